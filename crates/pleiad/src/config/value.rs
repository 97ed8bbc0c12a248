//! Setting value types and their parsers.
//!
//! Guarantees: a parsed value is in range. An error describes what is expected and does not contain the rejected text,
//! which may be an account key; `precedence` adds the text for settings that are not secret.

use std::net::IpAddr;
use std::num::NonZeroU64;
use std::path::PathBuf;

use pleiad_wire::nosql::trusted_proxies::IpNetwork;

/// How many values a setting takes, and whether a relative path is resolved against the file that contains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueArity {
    One,
    /// One path; in the configuration file, relative to that file.
    Path,
    /// Present or absent.
    Flag,
    /// Any number.
    Many,
}

/// A type that is parsed from one string.
pub trait SettingValue: Sized {
    const ARITY: ValueArity = ValueArity::One;
    /// All accepted strings, if the type is an enumeration; otherwise empty.
    const CHOICES: &'static [&'static str] = &[];
    /// `Err` completes the sentence "this is not …".
    fn read(text: &str) -> Result<Self, String>;
}

/// The type of a setting, parsed from all strings that were given for it; there are none if it is not set.
pub trait Field: Sized {
    const ARITY: ValueArity;
    const CHOICES: &'static [&'static str];
    fn parse(words: &[String]) -> Result<Self, String>;
}

impl<T: SettingValue> Field for T {
    const ARITY: ValueArity = T::ARITY;
    const CHOICES: &'static [&'static str] = T::CHOICES;

    fn parse(words: &[String]) -> Result<Self, String> {
        match words {
            [word] => T::read(word),
            _ => Err("exactly one value".to_owned()),
        }
    }
}

impl<T: SettingValue> Field for Option<T> {
    const ARITY: ValueArity = T::ARITY;
    const CHOICES: &'static [&'static str] = T::CHOICES;

    fn parse(words: &[String]) -> Result<Self, String> {
        match words {
            [] => Ok(None),
            _ => <T as Field>::parse(words).map(Some),
        }
    }
}

impl<T: SettingValue> Field for Vec<T> {
    const ARITY: ValueArity = ValueArity::Many;
    const CHOICES: &'static [&'static str] = T::CHOICES;

    fn parse(words: &[String]) -> Result<Self, String> {
        words.iter().map(|word| T::read(word)).collect()
    }
}

impl Field for bool {
    const ARITY: ValueArity = ValueArity::Flag;
    const CHOICES: &'static [&'static str] = &[];

    fn parse(words: &[String]) -> Result<Self, String> {
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] | ["false" | "0" | "no" | "off"] => Ok(false),
            ["true" | "1" | "yes" | "on"] => Ok(true),
            _ => Err("true or false".to_owned()),
        }
    }
}

/// A host: a DNS name or an IP address, without scheme and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(pub String);

impl SettingValue for HostName {
    fn read(text: &str) -> Result<Self, String> {
        let bare = text.trim_matches(['[', ']']);
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'*');
        let named = !bare.is_empty() && bare.bytes().all(plain);
        let right = named || bare.parse::<IpAddr>().is_ok();
        right
            .then(|| HostName(bare.to_owned()))
            .ok_or_else(|| "a host name or an IP address, without scheme or port".to_owned())
    }
}

impl SettingValue for IpNetwork {
    fn read(text: &str) -> Result<Self, String> {
        IpNetwork::parse(text).ok_or_else(|| "an IP address, or a network such as 10.0.0.0/8".to_owned())
    }
}

/// An HTTP or HTTPS URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url(pub String);

impl SettingValue for Url {
    fn read(text: &str) -> Result<Self, String> {
        let is_url = text.starts_with("http://") || text.starts_with("https://");
        is_url.then(|| Url(text.to_owned())).ok_or_else(|| "a URL that begins with http:// or https://".to_owned())
    }
}

/// Any text that is not empty.
impl SettingValue for String {
    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("a text".to_owned()) } else { Ok(text.to_owned()) }
    }
}

impl SettingValue for PathBuf {
    const ARITY: ValueArity = ValueArity::Path;

    fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() { Err("a path".to_owned()) } else { Ok(PathBuf::from(text)) }
    }
}

impl SettingValue for u16 {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "a whole number from 0 to 65535".to_owned())
    }
}

impl SettingValue for u32 {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "a whole number, 0 or more".to_owned())
    }
}

impl SettingValue for NonZeroU64 {
    fn read(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "a whole number, 1 or more".to_owned())
    }
}

/// A size: plain bytes, or with a suffix. `KiB`, `MiB`, `GiB` and `TiB` are powers of 1,024, `KB`, `MB`, `GB`
/// and `TB` powers of 1,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteCount(pub NonZeroU64);

const SUFFIXES: [(&str, u64); 9] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("", 1),
];

impl SettingValue for ByteCount {
    fn read(text: &str) -> Result<Self, String> {
        let scaled = SUFFIXES.iter().find_map(|(suffix, scale)| Some((text.strip_suffix(suffix)?, *scale)));
        let (digits, scale) = scaled.unwrap_or((text, 1));
        let count = digits.trim_end().parse::<u64>().ok().and_then(|n| n.checked_mul(scale)).and_then(NonZeroU64::new);
        count.map(ByteCount).ok_or_else(|| "a size in bytes such as 65536, 64KiB or 50GB".to_owned())
    }
}

/// Defines an enumeration with a fixed text for each variant.
macro_rules! choice {
    ($(#[$about:meta])* $name:ident { $($(#[$note:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$note])* $variant),+ }

        impl $name {
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl SettingValue for $name {
            const CHOICES: &'static [&'static str] = &[$($word),+];

            fn read(text: &str) -> Result<Self, String> {
                let found = [$($name::$variant),+].into_iter().find(|choice| choice.as_str() == text);
                found.ok_or_else(|| format!("one of {}", [$($word),+].join(", ")))
            }
        }
    };
}

choice! {
    /// The values of the setting `tls`; `Protocols` is derived from it.
    Tls { On = "on", Off = "off", Auto = "auto" }
}
choice! {
    /// The values of the setting `durability`; `DurabilitySetting` is derived from it.
    DurabilityMode { Synced = "synced", Written = "written" }
}
choice! {
    /// The account's default consistency level, by its Cosmos DB name.
    Consistency {
        Strong = "Strong",
        BoundedStaleness = "BoundedStaleness",
        Session = "Session",
        ConsistentPrefix = "ConsistentPrefix",
        Eventual = "Eventual",
    }
}

impl From<Consistency> for pleiad_model::Consistency {
    fn from(level: Consistency) -> Self {
        match level {
            Consistency::Strong => Self::Strong,
            Consistency::BoundedStaleness => Self::BoundedStaleness,
            Consistency::Session => Self::Session,
            Consistency::ConsistentPrefix => Self::ConsistentPrefix,
            Consistency::Eventual => Self::Eventual,
        }
    }
}

choice! {
    /// How much a page reads of a cross-partition query that needs no merging.
    CrossPartitionPage { Partition = "partition", Container = "container" }
}

impl From<CrossPartitionPage> for pleiad_engine::PageReach {
    fn from(page: CrossPartitionPage) -> Self {
        match page {
            CrossPartitionPage::Partition => Self::Partition,
            CrossPartitionPage::Container => Self::Container,
        }
    }
}

choice! {
    /// The limits profile: the service's limits of that year, or the current ones.
    Profile { Of2016 = "2016", Of2017 = "2017", Of2018 = "2018", Current = "current" }
}
choice! {
    LogLevel { Error = "error", Warn = "warn", Info = "info", Debug = "debug", Trace = "trace" }
}
choice! {
    LogFormat { Text = "text", Json = "json" }
}
