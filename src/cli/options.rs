//! Options that every command takes.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use tilewright_device::DeviceHost;
use tilewright_ir::{Diagnostic, TextureLimits};
use tilewright_script::{Dialect, Source};

use super::failure::Failure;

/// Options that every command takes.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Options of every command")]
pub struct Global {
    /// What to print on standard output
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// When to use colours; `auto` means on a terminal unless NO_COLOR is set
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub color: Color,
    /// Threads for proving and interpreting; 0 means all cores
    #[arg(long, global = true, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = parse_threads, allow_hyphen_values = true)]
    pub threads: u16,
    /// OpenCL device: an index or part of a name as `tilewright devices` lists them, `all`, or `none` to do without;
    /// the first one if not given
    #[arg(long, global = true, value_name = "ID", value_parser = parse_device)]
    pub device: Option<String>,
    /// Where drivers run
    #[arg(skip)]
    pub host: DeviceHost,
    /// Seconds that one proof goal may take
    #[arg(long, global = true, value_name = "SECONDS", default_value = "10", value_parser = parse_seconds, allow_hyphen_values = true)]
    pub timeout: Duration,
    /// Seed of the input values
    #[arg(long, global = true, value_name = "N", default_value_t = 0, value_parser = parse_seed, allow_hyphen_values = true)]
    pub seed: u64,
    /// Exit with 0 although something is unknown, vacuous or skipped; the report says so
    #[arg(long, global = true)]
    pub allow_unknown: bool,
    /// Show every obligation, not only those that are not proved
    #[arg(long, short, global = true)]
    pub verbose: bool,
}

/// What is printed on standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Text,
    /// One JSON document a line, one line a file
    Json,
}

/// When colours are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// A value for each of some symbolic extents.
#[derive(Args, Clone, Debug, Default)]
pub struct Shapes {
    /// Values of symbolic extents for the engines, each at least 1
    #[arg(long = "shape", value_name = "n=3,m=4", value_delimiter = ',', value_parser = parse_binding)]
    pub shape: Vec<(String, i64)>,
}

/// Conditions that the caller of a function guarantees.
#[derive(Args, Clone, Debug, Default)]
pub struct Assume {
    /// A condition on scalar parameters and extents that every caller guarantees; can be repeated
    #[arg(long = "assume", value_name = "CONDITION", allow_hyphen_values = true)]
    pub conditions: Vec<String>,
}

/// The failure of a condition that cannot be assumed; it points into its text.
pub(super) fn assume_failure(text: &str, faults: Vec<Diagnostic>) -> Failure {
    Failure::input(&Source { name: "<--assume>".into(), text: text.to_owned() }, faults)
}

/// How large textures may be.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The largest texture in texels, where a function does not say it itself; by default that of the device, and 8192x8192,
    /// which every device with images has, where none is used or a graph is planned
    #[arg(long, value_name = "WIDTHxHEIGHT")]
    pub limits: Option<TextureLimits>,
}

/// The notation in which programs are printed.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct DialectOption {
    /// The notation of the TVMScript that is printed: that of a release of TVM, 0.16 or 0.27, or canonical
    #[arg(long, value_name = "RELEASE", default_value_t = Dialect::Canonical)]
    pub dialect: Dialect,
}

fn parse_device(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => {
            Err("expected an index or a part of a name as `tilewright devices` lists them, `all` or `none`".to_owned())
        }
        named => Ok(named.to_owned()),
    }
}

fn parse_threads(text: &str) -> Result<u16, String> {
    whole(text, 0..=1024)
}

fn parse_seed(text: &str) -> Result<u64, String> {
    whole(text, 0..=u64::MAX)
}

/// Reads a whole number in a range.
pub(super) fn whole<T>(text: &str, range: RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display,
{
    let number = text.trim().parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| format!("expected a whole number of {} to {}", range.start(), range.end()))
}

pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds, such as 10 or 0.5".to_owned())?;
    let limit = 1.0e6;
    if seconds > 0.0 && seconds <= limit {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(format!("expected more than 0 and at most {limit} seconds; to let a goal take long, give a large number"))
    }
}

/// Reads `n=3`, an extent.
fn parse_binding(text: &str) -> Result<(String, i64), String> {
    let (name, value) = parse_integer(text)?;
    if value < 1 {
        return Err(format!("extent {name} must be at least 1, not {value}"));
    }
    Ok((name, value))
}

/// Reads `x=-4`.
pub(super) fn parse_integer(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=NUMBER, such as n=3")?;
    let name = name.trim();
    let starts_well = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
    if !starts_well || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
        return Err(format!("`{name}` is no name of an integer"));
    }
    let value: i64 = value.trim().parse().map_err(|_| format!("`{}` is no number of 64 bits", value.trim()))?;
    Ok((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_names_with_a_positive_number() {
        assert_eq!(parse_binding(" n = 3 "), Ok(("n".into(), 3)));
        for bad in ["n", "n=", "n=0", "n=-3", "3=n", "n=3.5", "=3", "n m=3", "n=99999999999999999999"] {
            assert!(parse_binding(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn seconds_are_positive_and_finite() {
        assert_eq!(parse_seconds("0.5"), Ok(Duration::from_millis(500)));
        for bad in ["0", "-1", "inf", "NaN", "1e300", "soon"] {
            assert!(parse_seconds(bad).is_err(), "{bad}");
        }
    }
}
