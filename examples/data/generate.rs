//! Writes `orders.csv`: orders of a shop that does not exist, the same ones on every run.
//!
//! `cargo run -p queue-examples --bin generate-orders > examples/data/orders.csv`
//!
//! What makes them plausible: a few customers order often and most once or twice, amounts are
//! spread log-normally around what a basket costs in that currency, nights are quiet, names are
//! written as people write them. Every fiftieth row or so was damaged on its way, in one of the
//! ways in which such exports are.

use std::io;

/// How many orders are written.
const ORDERS: usize = 1_000;

/// How many people are in the customer list.
const CUSTOMERS: usize = 430;

/// 2026-03-02T06:00:00Z, a Monday, in seconds since 1970.
const OPENING: i64 = 1_772_431_200;

/// A country with its currency, what one unit of that is worth against the euro, and names.
struct Country {
    code: &'static str,
    currency: &'static str,
    per_euro: f64,
    weight: f64,
    first: [&'static str; 6],
    last: [&'static str; 6],
}

#[rustfmt::skip]
const COUNTRIES: [Country; 8] = [
    Country { code: "DE", currency: "EUR", per_euro: 1.0, weight: 30.0,
        first: ["Jürgen", "Anke", "Björn", "Käthe", "Mehmet", "Sophie"],
        last: ["Müller", "Weiß", "Schröder", "Yılmaz", "Köhler", "Voigt"] },
    Country { code: "FR", currency: "EUR", per_euro: 1.0, weight: 16.0,
        first: ["Chloé", "François", "Zoé", "Amélie", "Noël", "Inès"],
        last: ["Lefèvre", "D'Aubigné", "Garçon", "Besançon", "Moreau", "Nguyễn"] },
    Country { code: "ES", currency: "EUR", per_euro: 1.0, weight: 10.0,
        first: ["José", "Begoña", "Íñigo", "María", "Raúl", "Lucía"],
        last: ["Núñez", "García", "Ibáñez", "Peña", "Ortiz", "Güell"] },
    Country { code: "PL", currency: "PLN", per_euro: 4.3, weight: 10.0,
        first: ["Łukasz", "Małgorzata", "Wojciech", "Zofia", "Paweł", "Agnieszka"],
        last: ["Wiśniewski", "Dąbrowska", "Wójcik", "Żak", "Kowalczyk", "Błaszczyk"] },
    Country { code: "CZ", currency: "CZK", per_euro: 25.0, weight: 6.0,
        first: ["Jiří", "Kateřina", "Ondřej", "Žaneta", "Tomáš", "Eliška"],
        last: ["Dvořák", "Říhová", "Šimek", "Černý", "Horák", "Krejčí"] },
    Country { code: "SE", currency: "SEK", per_euro: 11.2, weight: 8.0,
        first: ["Åsa", "Göran", "Maja", "Örjan", "Linnéa", "Erik"],
        last: ["Söderberg", "Åkesson", "Lindström", "Björk", "Öberg", "Nyström"] },
    Country { code: "GB", currency: "GBP", per_euro: 0.86, weight: 12.0,
        first: ["Siân", "Oliver", "Priya", "Callum", "Zoë", "Niamh"],
        last: ["O'Brien", "Llewellyn", "Patel", "Smith-Jones", "Brontë", "Okafor"] },
    Country { code: "US", currency: "USD", per_euro: 1.08, weight: 8.0,
        first: ["Renée", "Marcus", "Xóchitl", "Wei", "Jamal", "Grace"],
        last: ["Peña-Ruiz", "Johnson", "Nakamura", "Lee", "Washington", "Kim"] },
];

struct Customer {
    id: String,
    name: String,
    email: String,
    country: &'static Country,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut dice = Dice(0x5eed);
    let customers: Vec<_> = (0..CUSTOMERS).map(|n| customer(n, &mut dice)).collect();
    let mut out = csv::Writer::from_writer(io::stdout().lock());
    out.write_record([
        "order_id",
        "placed_at",
        "customer_id",
        "name",
        "email",
        "country",
        "currency",
        "amount_cents",
        "items",
    ])?;
    let mut placed = OPENING;
    for n in 0..ORDERS {
        placed = next_order(placed, &mut dice);
        // The square of a share makes the first customers in the list the regular ones.
        let regular = dice.share().powi(2) * CUSTOMERS as f64;
        let customer = &customers[regular as usize % CUSTOMERS];
        let items = 1 + (dice.share().ln() / 0.55_f64.ln()) as i64;
        let basket = 29.0 * (items as f64).powf(0.8) * (0.7 * dice.normal()).exp();
        let mut row = [
            format!("SO-{}", 240_117 + n),
            instant(placed),
            customer.id.clone(),
            customer.name.clone(),
            customer.email.clone(),
            customer.country.code.to_owned(),
            customer.country.currency.to_owned(),
            ((basket * customer.country.per_euro * 100.0) as i64).to_string(),
            items.to_string(),
        ];
        if n % 50 == 23 {
            damage(&mut row, n / 50);
        }
        out.write_record(&row)?;
    }
    out.flush()?;
    Ok(())
}

/// Spoils a row in one of the ways in which exports are spoiled.
fn damage(row: &mut [String; 9], turn: usize) {
    let [_, _, _, _, email, country, currency, amount, items] = row;
    match turn % 6 {
        0 => amount.insert(0, '-'),         // a refund that went out as an order
        1 => email.clear(),                 // ordered by telephone
        2 => *currency = "EURO".to_owned(), // typed by hand
        3 => *email = email.replace('@', " at "),
        4 => *items = "0".to_owned(), // every line was cancelled
        _ => country.clear(),
    }
}

fn customer(n: usize, dice: &mut Dice) -> Customer {
    let country = dice.country();
    let (first, last) = (dice.one_of(&country.first), dice.one_of(&country.last));
    // A business has a comma in its name now and then, which a reader of CSV must survive.
    let name = match n % 29 {
        7 => format!("{last} & Co., {first}"),
        _ => format!("{first} {last}"),
    };
    let host = dice.one_of(&["example.org", "example.com", "example.net"]);
    Customer {
        id: format!("C{:05}", 10_000 + n * 7),
        name,
        email: format!("{}.{}{n}@{host}", ascii(first), ascii(last)),
        country,
    }
}

/// The time of the next order: minutes apart by day, hours at night.
fn next_order(placed: i64, dice: &mut Dice) -> i64 {
    let hour = placed / 3_600 % 24;
    let mean_seconds = match hour {
        0..6 => 5_400.0,
        6..9 | 22.. => 1_200.0,
        18..22 => 240.0,
        _ => 420.0,
    };
    placed + 1 + (-dice.share().ln() * mean_seconds) as i64
}

/// RFC 3339 for an instant in March or April 2026.
fn instant(seconds: i64) -> String {
    const MARCH: i64 = 1_772_323_200;
    let (day, second) = ((seconds - MARCH) / 86_400, seconds % 86_400);
    let (month, day) = if day < 31 {
        (3, day + 1)
    } else {
        (4, day - 30)
    };
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!(
        "2026-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z",
        second % 60
    )
}

/// A name as it looks in a mail address.
fn ascii(name: &str) -> String {
    const PLAIN: [(&str, &str); 11] = [
        ("äáàåąÅ", "a"),
        ("éèêëęěÉ", "e"),
        ("íìïıÍ", "i"),
        ("öóòôøÖ", "o"),
        ("üúùÜ", "u"),
        ("çčćČ", "c"),
        ("ñńň", "n"),
        ("śšşŠ", "s"),
        ("žźżŽŻ", "z"),
        ("řŘ", "r"),
        ("łŁ", "l"),
    ];
    let plain = |c: char| {
        let found = PLAIN.iter().find(|(letters, _)| letters.contains(c));
        found
            .and_then(|(_, plain)| plain.chars().next())
            .unwrap_or(c)
    };
    let spelled = name.replace('ß', "ss").replace('ễ', "e");
    let letters = spelled.chars().map(plain).filter(char::is_ascii_alphabetic);
    letters.map(|c| c.to_ascii_lowercase()).collect()
}

/// A small generator of its own (SplitMix64), so that no library's new version changes the file.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// More than nothing and less than one.
    fn share(&mut self) -> f64 {
        ((self.roll() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// Normally distributed, by the sum of twelve.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.share()).sum::<f64>() - 6.0
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[(self.roll() % all.len() as u64) as usize]
    }

    fn country(&mut self) -> &'static Country {
        let mut left = self.share() * COUNTRIES.iter().map(|c| c.weight).sum::<f64>();
        for country in &COUNTRIES {
            left -= country.weight;
            if left < 0.0 {
                return country;
            }
        }
        &COUNTRIES[0]
    }
}
