//! Precedence of settings: a flag over an environment variable over the configuration file over the default.
//!
//! Guarantees: each unparsed value carries its origin, which error messages name; values of secret settings never
//! appear in messages. `value` parses the values.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pleiad_model::{Error, Result};

use super::file::ConfigFile;
use super::table::{Preset, RunMode, Setting, TABLE};
use super::value::{Field, ValueArity};

/// Unparsed values from the command line, by setting.
pub type FlagValues = BTreeMap<&'static str, Vec<String>>;

/// The process's environment, or a test's.
#[derive(Debug, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    pub fn of_process() -> Environment {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        };
        Environment(std::env::vars_os().map(text).collect())
    }

    /// The variable, unless it is missing or empty: compose files pass empty variables for "not set".
    pub fn get(&self, variable: &str) -> Option<&str> {
        self.0.get(variable).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn values(&self, setting: &Setting) -> Option<Vec<String>> {
        let value = self.get(&setting.variable())?;
        // Kubernetes sets PLEIAD_PORT=tcp://10.0.0.7:8081 in every pod beside a Service named "pleiad", and
        // PLEIAD_MONGO_PORT beside "pleiad-mongo".
        let is_port = setting.name == "port" || setting.name.ends_with("-port");
        if is_port && value.starts_with("tcp://") {
            return None;
        }
        match setting.arity {
            ValueArity::Many => Some(value.split(',').map(|word| word.trim().to_owned()).collect()),
            _ => Some(vec![value.to_owned()]),
        }
    }
}

impl<'v> Extend<&'v (&'v str, &'v str)> for Environment {
    fn extend<T: IntoIterator<Item = &'v (&'v str, &'v str)>>(&mut self, variables: T) {
        self.0.extend(variables.into_iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        Environment(variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }
}

/// The unparsed values of a setting, and their origin as error messages show it.
#[derive(Debug, PartialEq, Eq)]
struct RawValue {
    values: Vec<String>,
    origin: String,
}

/// The effective unparsed values of every setting.
#[derive(Debug)]
pub struct RawSettings(BTreeMap<&'static str, RawValue>);

impl RawSettings {
    pub fn gather(
        mode: RunMode,
        flags: &FlagValues,
        environment: &Environment,
        file: Option<&ConfigFile>,
    ) -> Result<RawSettings> {
        let choose = |setting: &'static Setting| {
            let given = from_flag(setting, flags)
                .or_else(|| from_variable(setting, environment))
                .or_else(|| from_file(setting, file?));
            Ok((setting.name, or_preset(setting, mode, given)?))
        };
        TABLE.iter().map(choose).collect::<Result<_>>().map(RawSettings)
    }

    /// Parses the values of one setting as its type.
    pub fn parse<T: Field>(&self, name: &'static str) -> Result<T> {
        let none = RawValue { values: Vec::new(), origin: name.to_owned() };
        let given = self.0.get(name).unwrap_or(&none);
        T::parse(&given.values).map_err(|wanted| invalid_value(name, given, &wanted))
    }
}

/// The path of the configuration file; determined first, because the file cannot contain it.
pub fn config_path(flags: &FlagValues, environment: &Environment) -> Option<PathBuf> {
    let setting = Setting::find("config")?;
    let given = from_flag(setting, flags).or_else(|| from_variable(setting, environment))?;
    given.values.last().map(PathBuf::from)
}

fn from_flag(setting: &Setting, flags: &FlagValues) -> Option<RawValue> {
    let values = flags.get(setting.name)?.clone();
    Some(RawValue { values, origin: format!("--{}", setting.name) })
}

fn from_variable(setting: &Setting, environment: &Environment) -> Option<RawValue> {
    Some(RawValue { values: environment.values(setting)?, origin: setting.variable() })
}

fn from_file(setting: &Setting, file: &ConfigFile) -> Option<RawValue> {
    let (line, values) = file.values.get(setting.name)?;
    let origin = format!("{}:{line}: {}", file.path.display(), setting.name);
    Some(RawValue { values: values.clone(), origin })
}

fn or_preset(setting: &Setting, mode: RunMode, given: Option<RawValue>) -> Result<RawValue> {
    let preset = || RawValue { values: Vec::new(), origin: setting.name.to_owned() };
    match (given, setting.preset(mode)) {
        (Some(given), Preset::Absent) => {
            Err(Error::invalid(format!("{}: `pleiad {}` does not have this setting.", given.origin, mode.as_str())))
        }
        (Some(given), _) => Ok(given),
        (None, Preset::Is(word)) => Ok(RawValue { values: vec![word.to_owned()], ..preset() }),
        (None, _) => Ok(preset()),
    }
}

fn invalid_value(name: &str, given: &RawValue, wanted: &str) -> Error {
    let secret = Setting::find(name).is_some_and(Setting::is_secret);
    let shown_value = if secret { "the value given".to_owned() } else { format!("\"{}\"", given.values.join(", ")) };
    Error::invalid(format!("{}: {shown_value} is not {wanted}.", given.origin))
}
