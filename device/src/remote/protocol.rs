//! The requests to a worker that holds devices, and its replies.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::error::DeviceError;
use crate::info::{DeviceInfo, Survey};
use crate::plan::{LaunchPlan, RunOptions, RunOutput};
use crate::pool::ScratchStats;
use crate::program::BuildOptions;

/// A request. Sessions and programs are referred to by the numbers in earlier replies.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Request<'a> {
    Survey,
    Open { device: DeviceInfo },
    Close { session: u64 },
    Build { session: u64, source: String, options: BuildOptions },
    Release { program: u64 },
    Run { session: u64, programs: Vec<u64>, plan: Cow<'a, LaunchPlan>, options: Cow<'a, RunOptions> },
    Copy { session: u64, bytes: u64 },
    ScratchStats { session: u64 },
    TrimScratch { session: u64 },
}

/// A reply to a request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Reply {
    Survey(Survey),
    Opened { session: u64, info: DeviceInfo },
    Built { program: u64, correctly_rounded: bool, kernels: Vec<String>, log: String },
    Ran(RunOutput),
    Nanoseconds(u64),
    ScratchStats(ScratchStats),
    Done,
    Failed(DeviceError),
}
