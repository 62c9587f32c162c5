//! The options that say which passes run: `-p LIST` and `--pipeline PRESET`.

use tilewright_ir::Diagnostic;
use tilewright_script::Source;

use super::failure::Failure;
use crate::passes::{PRESETS, Pipeline, preset_by_name, read_passes};

/// Which passes run.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct PassOptions {
    /// Exactly these passes, in this order, separated by commas; tile_layout=A:{1,0:T(8,128)} asks for a layout
    #[arg(short, long = "passes", value_name = "PASS", conflicts_with = "pipeline")]
    passes: Vec<String>,
    /// The passes of a preset that the program wants: opencl, adreno or cpu; `opt --list` says what each is
    #[arg(long, value_name = "PRESET")]
    pipeline: Option<String>,
}

impl PassOptions {
    /// The pipeline that is asked for; `None` if neither option was given.
    ///
    /// # Errors
    /// There is no such pass or preset.
    pub fn pipeline(&self) -> Result<Option<Pipeline>, Failure> {
        let fault = |fault: Diagnostic| {
            Failure::input(&Source { name: "<arguments>".into(), text: String::new() }, vec![fault])
        };
        if let Some(name) = &self.pipeline {
            return preset_by_name(name).map(|preset| Some(Pipeline::Preset(preset))).map_err(fault);
        }
        let mut calls = Vec::new();
        for list in &self.passes {
            calls.extend(read_passes(list).map_err(fault)?);
        }
        Ok((!self.passes.is_empty()).then_some(Pipeline::Passes(calls)))
    }
}

/// The failure of a pass that cannot do what is asked of it; it points into the text of the request.
pub(super) fn asked_failure(text: String, fault: Diagnostic) -> Failure {
    Failure::input(&Source { name: "<--passes>".into(), text }, vec![fault])
}

/// The names and summaries of the presets.
pub(super) fn presets() -> impl Iterator<Item = (&'static str, &'static str)> {
    PRESETS.iter().map(|preset| (preset.name, preset.summary))
}
