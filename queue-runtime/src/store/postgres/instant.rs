//! Instants as Postgres keeps them: all that fit, and what does not as the ends of time.
//!
//! Only the binary form is read and written, so no time zone and no style of dates has a say.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueFormat, PgValueRef};
use sqlx::{Decode, Encode, Postgres, Type};

use crate::time::Timestamp;

/// An instant as Postgres keeps it: microseconds since 2000, or the ends of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At(pub(super) Timestamp);

impl At {
    /// The beginning of 2000 in milliseconds since 1970.
    const EPOCH_MS: i64 = 946_684_800_000;

    /// The last instant that `timestamptz` has, the end of the year 294276, in milliseconds since
    /// 1970; what is later is kept as `infinity`.
    const LAST_MS: i64 = 9_224_318_015_999_999;

    /// The first instant that `timestamptz` has, in 4713 BC; what is earlier is kept as
    /// `-infinity`.
    const FIRST_MS: i64 = -210_866_803_200_000;

    fn stored(self) -> i64 {
        match self.0.as_millis() {
            ms if ms > Self::LAST_MS => i64::MAX,
            ms if ms < Self::FIRST_MS => i64::MIN,
            ms => (ms - Self::EPOCH_MS) * 1_000,
        }
    }

    fn of_stored(stored: i64) -> Self {
        let ms = match stored {
            i64::MAX => i64::MAX,
            i64::MIN => i64::MIN,
            micros => micros.div_euclid(1_000) + Self::EPOCH_MS,
        };
        Self(Timestamp::from_millis(ms))
    }
}

impl Type<Postgres> for At {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(1184)) // timestamptz
    }
}

impl PgHasArrayType for At {
    fn array_type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(1185)) // timestamptz[]
    }
}

impl Encode<'_, Postgres> for At {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Encode::<Postgres>::encode_by_ref(&self.stored(), buffer)
    }
}

impl Decode<'_, Postgres> for At {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        match value.format() {
            PgValueFormat::Binary => {
                let bytes: [u8; 8] = value.as_bytes()?.try_into()?;
                Ok(Self::of_stored(i64::from_be_bytes(bytes)))
            }
            PgValueFormat::Text => Err("an instant came as text".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_survives_being_stored_and_the_end_of_time_stays_the_end() {
        let check = |ms: i64| {
            let at = At(Timestamp::from_millis(ms));
            assert_eq!(At::of_stored(at.stored()), at, "{ms}");
        };
        check(0);
        check(-1);
        check(1_796_000_000_123);
        check(At::EPOCH_MS);
        check(At::FIRST_MS);
        check(At::LAST_MS);
        check(i64::MIN);
        check(i64::MAX);
    }

    #[test]
    fn an_instant_beyond_those_of_postgres_is_kept_as_infinity() {
        let stored = |ms| At(Timestamp::from_millis(ms)).stored();
        assert_eq!(stored(At::LAST_MS + 1), i64::MAX);
        assert_eq!(stored(At::FIRST_MS - 1), i64::MIN);
    }
}
