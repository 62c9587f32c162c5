//! `tilewright devices`: lists the OpenCL devices and the solver.

use std::fmt::Write as _;

use serde::Serialize;
use tilewright_device::{DeviceInfo, Loader, Survey};

use super::exit::ExitStatus;
use super::failure::Failure;
use super::options::Global;
use super::printer::Printer;
use crate::json::to_line;
use crate::report::lines::folded;

/// List the OpenCL devices and the solver
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  tilewright devices\n  tilewright check --device 1 examples/addone.py")]
pub struct Args {}

/// The document of `--format json`: schema `tilewright.devices/1`.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    solver: String,
    /// The OpenCL loader that was opened; none if there is no OpenCL.
    loader: Option<&'a str>,
    devices: Vec<Row<'a>>,
    faults: Vec<String>,
}

#[derive(Serialize)]
/// One device, as its driver describes it. `id` is the index that `--device` takes; memory is in bytes.
#[expect(clippy::struct_excessive_bools, reason = "a table of features, each of them there or not")]
struct Row<'a> {
    id: usize,
    name: &'a str,
    platform: &'a str,
    kind: String,
    available: bool,
    opencl_version: &'a str,
    opencl_c_version: &'a str,
    driver_version: &'a str,
    compute_units: u64,
    global_memory_bytes: u64,
    max_work_group_size: u64,
    images: bool,
    image2d_max_width: u64,
    image2d_max_height: u64,
    half_images: bool,
    fp64: bool,
    fp16: bool,
    correctly_rounded_divide_sqrt: bool,
}

impl<'a> Row<'a> {
    fn new(info: &'a DeviceInfo) -> Self {
        Self {
            id: info.index,
            name: &info.name,
            platform: &info.platform,
            kind: info.device_type.to_string(),
            available: info.available,
            opencl_version: &info.opencl_version,
            opencl_c_version: &info.opencl_c_version,
            driver_version: &info.driver_version,
            compute_units: info.compute_units,
            global_memory_bytes: info.global_memory_bytes,
            max_work_group_size: info.max_work_group_size,
            images: info.images,
            image2d_max_width: info.image2d_max_width,
            image2d_max_height: info.image2d_max_height,
            half_images: info.half_images,
            fp64: info.fp64,
            fp16: info.fp16,
            correctly_rounded_divide_sqrt: info.correctly_rounded_divide_sqrt,
        }
    }
}

/// Lists the devices. An empty list is a result, too; a driver that fails is reported on standard error.
///
/// # Errors
/// The solver is missing or too old.
pub fn run(_: &Args, global: &Global, printer: &mut Printer) -> Result<ExitStatus, Failure> {
    let solver = super::solver()?;
    let survey = global.host.survey();
    let faults: Vec<String> = survey.faults.iter().map(ToString::to_string).collect();
    if printer.is_json() {
        let devices = survey.devices.iter().map(Row::new).collect();
        let loader = if let Loader::Opened(path) = &survey.loader { Some(path.as_str()) } else { None };
        printer.json(&to_line(&Document { schema: "tilewright.devices/1", solver, loader, devices, faults }))?;
    } else {
        printer.result(&folded(&text(&survey, &solver), printer.style()))?;
        for fault in faults {
            printer.message(&folded(&format!("warning: {fault}"), printer.style_of_messages()));
        }
    }
    Ok(ExitStatus::Success)
}

/// The list for people: the solver, two lines a device, and advice if there is none.
fn text(survey: &Survey, solver: &str) -> String {
    let mut out = format!("solver: {solver}\n");
    for info in &survey.devices {
        let images = format!("images up to {}x{}", info.image2d_max_width, info.image2d_max_height);
        let features = [(images.as_str(), info.images), ("fp64", info.fp64), ("fp16", info.fp16)];
        let features: Vec<_> = features.iter().filter(|(_, there)| *there).map(|(name, _)| *name).collect();
        // Bytes to GiB, rounded down.
        let gibibytes = info.global_memory_bytes >> 30;
        let _ = write!(
            out,
            "{}\n   {}, {} compute units, {gibibytes} GiB, {}, {}{}\n",
            info.label(),
            info.device_type,
            info.compute_units,
            info.opencl_c_version.trim(),
            features.join(", "),
            if info.available { "" } else { ", not available" }
        );
    }
    // The list is empty for one of two reasons: no loader, or a loader that finds no device.
    match &survey.loader {
        _ if !survey.devices.is_empty() => {}
        Loader::Opened(_) => {
            out.push_str("no OpenCL device; install one (Debian: pocl-opencl-icd) or check with --device none\n");
        }
        absent @ (Loader::NotBuilt | Loader::Missing(_)) => {
            let _ = writeln!(out, "{absent}; install it (Debian: pocl-opencl-icd) or check with --device none");
        }
    }
    out
}
