//! Layers of MobileNet and ResNet in textures: the examples' convolutions at the shapes that these networks have.
//!
//! Every layer is lowered and proved at its real shape. All are run too, in the interpreter after every step and on the first
//! OpenCL device, and compared; the heaviest with fewer rows and columns, never with fewer channels or another kernel, because
//! it is the channels that the layouts are about.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;
use std::time::{Duration, Instant};

use tilewright::harness::engine::Status;
use tilewright::pipeline::outcome::Summary;
use tilewright::pipeline::{self, DeviceChoice, Options};
use tilewright::report::FileReport;
use tilewright_ir::TextureLimits;
use tilewright_script::Source;

/// A convolution with all channels in each sum, or with a kernel for each channel.
#[derive(Clone, Copy)]
enum Layer {
    Conv { size: (u32, u32), channels: u32, filters: u32, kernel: u32, stride: u32, padding: u32 },
    Depthwise { size: (u32, u32), channels: u32, stride: u32 },
}

impl Layer {
    /// The example with the layer's numbers in place of its own.
    fn source(self) -> Source {
        let (file, head, numbers) = match self {
            Self::Conv { size: (height, width), channels, filters, kernel, stride, padding } => (
                "conv2d_texture.py",
                "def conv2d(",
                format!(
                    "height={height}, width={width}, channels={channels}, filters={filters}, kernel={kernel}, \
                    stride={stride}, padding={padding}"
                ),
            ),
            Self::Depthwise { size: (height, width), channels, stride } => (
                "depthwise_texture.py",
                "def depthwise(",
                format!("height={height}, width={width}, channels={channels}, kernel=3, stride={stride}, padding=1"),
            ),
        };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(file);
        let text = std::fs::read_to_string(path).unwrap();
        let (before, rest) = text.split_once(head).unwrap();
        let (_, after) = rest.split_once("):").unwrap();
        Source { name: file.into(), text: format!("{before}{head}{numbers}):{after}") }
    }

    /// The same layer of another size.
    fn of_size(self, rows: u32, columns: u32) -> Self {
        match self {
            Self::Conv { channels, filters, kernel, stride, padding, .. } => {
                Self::Conv { size: (rows, columns), channels, filters, kernel, stride, padding }
            }
            Self::Depthwise { channels, stride, .. } => Self::Depthwise { size: (rows, columns), channels, stride },
        }
    }
}

fn options(device: DeviceChoice) -> Options {
    Options {
        threads: 0,
        timeout: Duration::from_secs(10),
        seed: 3,
        shapes: Vec::new(),
        device,
        host: tilewright_device::DeviceHost::default(),
        assume: Vec::new(),
        limits: Some(TextureLimits::PROMISED),
        allow_unknown: false,
        pipeline: tilewright::passes::Pipeline::default(),
        record: false,
        function: None,
    }
}

/// Lowers a layer and proves every step.
fn prove(layer: Layer) {
    let start = Instant::now();
    let options = options(DeviceChoice::None);
    let judge = options.judge().unwrap();
    let mut programs = pipeline::read(&layer.source().text, None).unwrap().programs;
    assert_eq!(programs.len(), 1);
    let program = &mut programs[0];
    pipeline::limits::set(program, options.limits, &options.device, &options.host).unwrap();
    let lowering = pipeline::lower(program, &judge, false, &mut |_, _| ()).unwrap();
    let steps: Vec<&str> = lowering.steps.iter().map(|step| step.name.as_str()).collect();
    assert!(steps.contains(&"lower_texture") && steps.contains(&"vectorize"), "{steps:?}");
    let texture = lowering.steps.iter().flat_map(|step| &step.reports).filter(|row| row.obligation.id() == "texture");
    assert!(texture.count() >= 3, "data, weights and result are textures");
    let open: Vec<_> =
        lowering.steps.iter().flat_map(|step| &step.reports).filter(|row| !row.verdict.is_proved()).collect();
    assert!(open.is_empty() && lowering.is_complete(), "{open:#?}");
    eprintln!("  proved in {:.1} s", start.elapsed().as_secs_f64());
}

/// Proves a layer and runs it after every step, and on the device; everything agrees.
fn run(layer: Layer) {
    let start = Instant::now();
    let device = if tilewright_device::devices().unwrap_or_default().is_empty() {
        eprintln!("  there is no OpenCL device: interpreted only");
        DeviceChoice::None
    } else {
        DeviceChoice::First
    };
    let wanted = usize::from(device != DeviceChoice::None);
    let source = layer.source();
    let outcome = pipeline::check(&source.text, &options(device), &mut |_, _| ()).unwrap();
    let report = FileReport { source: &source, outcome: &outcome };
    assert_eq!(outcome.summary(), Summary::Proved, "{}", report.to_json());
    let engines = &outcome.functions[0].run.engines;
    let on_device = engines.iter().filter(|row| row.engine == "opencl" && row.status == Status::Agrees).count();
    assert_eq!(on_device, wanted);
    assert!(engines.iter().all(|row| row.mismatches == 0));
    for row in engines {
        eprintln!("  {} {:?}: {:.0} ms", row.engine, row.stage, row.ms);
    }
    eprintln!("  run in {:.1} s", start.elapsed().as_secs_f64());
}

macro_rules! layers {
    ($($name:ident: $layer:expr, at $rows:literal x $columns:literal;)*) => {
        mod proved {
            use super::*;
            $(#[test]
            fn $name() {
                prove($layer);
            })*
        }

        mod run_and_compared {
            use super::*;
            $(#[test]
            fn $name() {
                let layer: Layer = $layer;
                run(layer.of_size($rows, $columns));
            })*
        }
    };
}

const fn conv(size: u32, (channels, filters): (u32, u32), kernel: u32, stride: u32) -> Layer {
    Layer::Conv { size: (size, size), channels, filters, kernel, stride, padding: kernel / 2 }
}

const fn depthwise(size: u32, channels: u32, stride: u32) -> Layer {
    Layer::Depthwise { size: (size, size), channels, stride }
}

layers! {
    mobilenet_first_3x3_stride_2_from_3_to_32_at_224: conv(224, (3, 32), 3, 2), at 57 x 43;
    mobilenet_depthwise_32_at_112: depthwise(112, 32, 1), at 112 x 112;
    mobilenet_depthwise_64_at_112_stride_2: depthwise(112, 64, 2), at 112 x 112;
    mobilenet_depthwise_128_at_56: depthwise(56, 128, 1), at 56 x 56;
    mobilenet_depthwise_512_at_14: depthwise(14, 512, 1), at 14 x 14;
    mobilenet_depthwise_512_at_14_stride_2: depthwise(14, 512, 2), at 14 x 14;
    mobilenet_pointwise_512_to_512_at_14: conv(14, (512, 512), 1, 1), at 3 x 2;
    resnet_first_7x7_stride_2_from_3_to_64_at_224: conv(224, (3, 64), 7, 2), at 31 x 19;
    resnet_3x3_64_to_64_at_56: conv(56, (64, 64), 3, 1), at 7 x 5;
    resnet_1x1_stride_2_256_to_512_at_56: conv(56, (256, 512), 1, 2), at 7 x 5;
    resnet_3x3_512_to_512_at_7: conv(7, (512, 512), 3, 1), at 2 x 1;
    ragged_3x3_18_to_10: Layer::Conv { size: (13, 11), channels: 18, filters: 10, kernel: 3, stride: 2, padding: 1 }, at 9 x 6;
}
