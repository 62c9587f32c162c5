//! The option `--certificate`, and how a certificate is written.
//!
//! A judge records the steps of its proofs only if it is asked to, so the option is read before any checking starts.

use std::path::{Path, PathBuf};

use tilewright_verify::{Judge, Report};

use super::failure::Failure;
use super::output::OutputFile;
use crate::certificate::{self, Entry, folder};
use crate::pipeline::Options;
use crate::pipeline::outcome::CheckOutcome;

/// The option of every command that proves something.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct CertificateOption {
    /// Write the proof to this folder: SMT-LIB 2 files and manifest.json, for `tilewright recheck`; an older certificate
    /// there is replaced
    #[arg(long = "certificate", id = "certificate", value_name = "DIR")]
    folder: Option<PathBuf>,
}

impl CertificateOption {
    /// A judge with these options, which records its proofs if a certificate is wanted.
    ///
    /// # Errors
    /// The folder cannot take a certificate (reported here, before any work is done), or there is no solver.
    pub fn judge(&self, options: &Options) -> Result<Judge, Failure> {
        let record = self.is_wanted()?;
        let options = Options { record: record || options.record, ..options.clone() };
        options.judge().map_err(|error| Failure::Internal(error.to_string()))
    }

    /// The folder, to compare it with other outputs.
    pub(super) fn output(&self) -> Option<OutputFile<'_>> {
        self.folder.as_deref().map(|path| OutputFile { option: "--certificate", path, suffix: None })
    }

    /// Whether a certificate is wanted.
    ///
    /// # Errors
    /// The folder is neither new nor empty nor an older certificate.
    pub fn is_wanted(&self) -> Result<bool, Failure> {
        match &self.folder {
            Some(path) => folder::refuses(path).map_or(Ok(true), |reason| Err(refused(path, &reason))),
            None => Ok(false),
        }
    }

    /// Writes the recorded proofs of the reports as a certificate. Does nothing if the option was not given.
    ///
    /// # Errors
    /// A goal is too large to be written, or the folder cannot be written.
    pub fn write(&self, entries: &[Entry<'_>]) -> Result<(), Failure> {
        let Some(path) = &self.folder else { return Ok(()) };
        let files = certificate::files(entries).map_err(|error| Failure::Internal(error.to_string()))?;
        folder::write(path, &files).map_err(|error| refused(path, &error.to_string()))
    }

    /// Writes a certificate of reports that belong to no file or function, such as those on a map.
    ///
    /// # Errors
    /// As [`CertificateOption::write`].
    pub fn write_reports(&self, reports: &[Report]) -> Result<(), Failure> {
        self.write(&reports.iter().map(|report| (String::new(), report)).collect::<Vec<_>>())
    }
}

/// The failure of a folder that cannot take a certificate.
fn refused(path: &Path, reason: &str) -> Failure {
    let name = path.display().to_string();
    Failure::plain(name.clone(), "certificate-folder", format!("no certificate can be written to {name}: {reason}"))
        .with_help("name a folder that does not exist yet, is empty, or holds an older certificate and nothing else")
}

/// The reports of a check, each with the file, function and step that it belongs to.
pub fn entries<'a>(file: &'a str, outcome: &'a CheckOutcome) -> impl Iterator<Item = Entry<'a>> {
    outcome.functions.iter().flat_map(move |function| {
        function.steps.iter().flat_map(move |step| {
            let within = format!("{file}::{} {}", function.name, step.name);
            step.reports.iter().map(move |report| (within.clone(), report))
        })
    })
}
