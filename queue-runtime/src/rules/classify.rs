//! Which faults may pass by themselves: one table.
//!
//! Recognising a fault in an error value is the dispatcher's work; this only says what each kind
//! means. An error that nobody recognises is retried, since a wrong retry costs time and a wrong
//! dead letter costs the job.

/// What an error means for the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// It may pass: try again.
    Retry,
    /// Trying again cannot help.
    Permanent,
    /// Nothing is known about it, which means retry.
    Unknown,
}

/// A kind of fault that can be recognised in an error or one of its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fault {
    /// Marked permanent by whoever made the error.
    MarkedPermanent,
    /// Reading or writing failed in the operating system.
    Io,
    /// A time limit ran out.
    Timeout,
    /// A connection was lost, refused, or could not be had from a pool.
    ConnectionLost,
    /// A server answered with this HTTP status.
    HttpStatus(u16),
    /// Data does not have the form that the code expects.
    Validation,
    /// A row that must exist does not.
    RowNotFound,
    /// The database refused a write because of a constraint.
    ConstraintViolation,
}

/// Says what a fault means.
pub const fn class(fault: Fault) -> Class {
    match fault {
        Fault::Io | Fault::Timeout | Fault::ConnectionLost => Class::Retry,
        Fault::HttpStatus(408 | 425 | 429 | 500..=599) => Class::Retry,
        Fault::HttpStatus(400..=499) => Class::Permanent,
        Fault::HttpStatus(_) => Class::Unknown,
        Fault::MarkedPermanent
        | Fault::Validation
        | Fault::RowNotFound
        | Fault::ConstraintViolation => Class::Permanent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_its_class() {
        for (fault, expected) in [
            (Fault::MarkedPermanent, Class::Permanent),
            (Fault::Io, Class::Retry),
            (Fault::Timeout, Class::Retry),
            (Fault::ConnectionLost, Class::Retry),
            (Fault::Validation, Class::Permanent),
            (Fault::RowNotFound, Class::Permanent),
            (Fault::ConstraintViolation, Class::Permanent),
            (Fault::HttpStatus(200), Class::Unknown),
            (Fault::HttpStatus(400), Class::Permanent),
            (Fault::HttpStatus(404), Class::Permanent),
            (Fault::HttpStatus(408), Class::Retry),
            (Fault::HttpStatus(422), Class::Permanent),
            (Fault::HttpStatus(429), Class::Retry),
            (Fault::HttpStatus(500), Class::Retry),
            (Fault::HttpStatus(503), Class::Retry),
        ] {
            assert_eq!(class(fault), expected, "{fault:?}");
        }
    }
}
