//! Account keys: parsing, defaults, the key file and the generation of new keys.
//!
//! Guarantees: an `AccountKey` is base64 of at least 32 bytes, and only `reveal` shows its text. The emulators'
//! well-known key, which is public, is accepted by `pleiad dev` only. The four keys differ from each other, so that a
//! read-only key is never a read-write key as well.

use std::fmt;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use pleiad_model::{Error, Result};
use ring::rand::{SecureRandom, SystemRandom};

use super::table::RunMode;
use super::toml_document::TomlDocument;
use super::value::SettingValue;

/// The key of Azure's own emulators; SDK samples and test suites contain it.
pub const WELL_KNOWN_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// As long as the service's own keys.
const NEW_KEY_BYTES: usize = 64;
/// An HMAC-SHA256 key shorter than the hash is weaker than the hash.
const KEY_BYTES_MIN: usize = 32;

#[derive(Clone, PartialEq, Eq)]
pub struct AccountKey {
    text: String,
}

impl AccountKey {
    /// The key's text, as written in connection strings.
    pub fn reveal(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl SettingValue for AccountKey {
    fn read(text: &str) -> Result<Self, String> {
        let bytes = BASE64_STANDARD.decode(text).unwrap_or_default();
        if bytes.len() < KEY_BYTES_MIN {
            return Err(format!("the base64 of at least {KEY_BYTES_MIN} bytes; `pleiad config --new-key` makes one"));
        }
        Ok(AccountKey { text: text.to_owned() })
    }
}

/// The names of the four settings, in the order of `AccountKeys`.
const NAMES: [&str; 4] = ["primary-key", "secondary-key", "primary-read-only-key", "secondary-read-only-key"];

/// The four keys; `None` for those that were not given.
pub type AccountKeys = [Option<AccountKey>; 4];

#[derive(Clone, Debug)]
pub struct ConfiguredKeys {
    pub primary: AccountKey,
    pub secondary: Option<AccountKey>,
    pub primary_read_only: Option<AccountKey>,
    pub secondary_read_only: Option<AccountKey>,
}

impl ConfiguredKeys {
    /// Precedence: keys given as settings, then those of the key file, then in dev the well-known key.
    pub fn resolve(mode: RunMode, given: AccountKeys, file: Option<&Path>) -> Result<ConfiguredKeys> {
        let from_file = file.map(read_file).transpose()?.unwrap_or_default();
        let [first, second, third, fourth] = from_file;
        let [primary, secondary, primary_read_only, secondary_read_only] = given;
        let keys = ConfiguredKeys {
            primary: primary.or(first).map_or_else(|| default_key(mode), Ok)?,
            secondary: secondary.or(second),
            primary_read_only: primary_read_only.or(third),
            secondary_read_only: secondary_read_only.or(fourth),
        };
        keys.check(mode)?;
        Ok(keys)
    }

    fn all(&self) -> [Option<&AccountKey>; 4] {
        let rest = [&self.secondary, &self.primary_read_only, &self.secondary_read_only];
        let [second, third, fourth] = rest.map(Option::as_ref);
        [Some(&self.primary), second, third, fourth]
    }

    fn check(&self, mode: RunMode) -> Result<()> {
        let all = self.all();
        if mode == RunMode::Serve
            && let Some(at) = all.iter().position(|key| key.is_some_and(|key| key.text == WELL_KNOWN_KEY))
        {
            return Err(Error::invalid(format!(
                "`{}` is the emulators' well-known key, which everybody has. {ADVICE}",
                NAMES[at]
            )));
        }
        for (at, key) in all.iter().enumerate().filter(|(_, key)| key.is_some()) {
            if let Some(twin) = all[..at].iter().position(|other| other == key) {
                return Err(Error::invalid(format!(
                    "`{}` and `{}` are the same key; each must be its own.",
                    NAMES[twin], NAMES[at]
                )));
            }
        }
        Ok(())
    }
}

const ADVICE: &str = "Make one with `pleiad config --new-key > pleiad.key` and start with `--key-file pleiad.key`, or \
                      put it into the environment as PLEIAD_PRIMARY_KEY.";

fn default_key(mode: RunMode) -> Result<AccountKey> {
    match mode {
        RunMode::Dev => AccountKey::read(WELL_KNOWN_KEY).map_err(Error::internal),
        RunMode::Serve => Err(Error::invalid(format!("`pleiad serve` needs a key of your own. {ADVICE}"))),
    }
}

/// The file contains either the primary key alone, or TOML with the settings' names.
fn read_file(path: &Path) -> Result<AccountKeys> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Error::invalid(format!("cannot read the key file {}: {error}", path.display())))?;
    match AccountKey::read(text.trim()) {
        Ok(key) => Ok([Some(key), None, None, None]),
        Err(_) => parse_file(path, &text),
    }
}

fn parse_file(path: &Path, text: &str) -> Result<AccountKeys> {
    let document = TomlDocument::new(path, text);
    let table = document
        .parse()
        .map_err(|_| Error::invalid(format!("{}: neither a key nor TOML with keys. {ADVICE}", path.display())))?;
    let mut keys = AccountKeys::default();
    for entry in document.entries(&table, &NAMES)? {
        let key = AccountKey::read(document.string(&entry)?).map_err(|wanted| document.must_be(&entry, &wanted))?;
        if let Some(at) = NAMES.iter().position(|name| *name == entry.name) {
            keys[at] = Some(key);
        }
    }
    Ok(keys)
}

/// A new random key, in base64.
pub fn new_key() -> Result<String> {
    let mut bytes = [0; NEW_KEY_BYTES];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| Error::unavailable("the operating system gave no random bytes; try again"))?;
    Ok(BASE64_STANDARD.encode(bytes))
}
