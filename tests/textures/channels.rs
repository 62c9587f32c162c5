//! Textures of one and two channels: on a device that lists such images, and refused before anything runs on one that does not.

use tilewright::codegen::{Generated, Options, generate_with};
use tilewright_device::{BuildOptions, Channels, DeviceError, LaunchPlan, MemoryKind, RunOptions, RunOutput};
use tilewright_ir::texture::whole_texel;
use tilewright_ir::{Buffer, Expr, ScalarType, Stmt, validate};

use crate::textures::{Case, channel, function, linear, nest, ramp, session, texture_of, values};

const TYPES: [ScalarType; 8] = [
    ScalarType::Float32,
    ScalarType::Float16,
    ScalarType::Int8,
    ScalarType::Int16,
    ScalarType::Int32,
    ScalarType::UInt8,
    ScalarType::UInt16,
    ScalarType::UInt32,
];

/// A texel at a row and column.
fn texel(buffer: &Buffer, row: impl Into<Expr>, column: impl Into<Expr>) -> Expr {
    Expr::load(buffer, vec![row.into(), column.into(), whole_texel(buffer.channels().unwrap())])
}

/// A store of a whole texel.
fn store(buffer: &Buffer, row: impl Into<Expr>, column: impl Into<Expr>, value: Expr) -> Stmt {
    Stmt::store(buffer, vec![row.into(), column.into(), whole_texel(buffer.channels().unwrap())], value)
}

/// A program from one texture to another of as many channels: each texel is the sum of two, turned around.
fn sums(channels: u16, ty: ScalarType) -> Case {
    let (x, y) = (texture_of(channels, "X", ty, 5, 7), texture_of(channels, "Y", ty, 5, 7));
    let body = nest(5, 7, |i, j| {
        let other = texel(&x, Expr::int(4) - Expr::from(i), Expr::int(6) - Expr::from(j));
        store(&y, i, j, texel(&x, i, j) + other)
    });
    Case::new(function("sums", &[&x, &y], body), &[values(ty, &[5, 7, channels.into()])])
}

/// What a run says, for a plan that the device may refuse.
fn run(generated: &Generated, plan: &LaunchPlan) -> Result<RunOutput, DeviceError> {
    let options = BuildOptions { flags: generated.metadata.build_options.clone(), ..BuildOptions::default() };
    let program = session().build(&generated.source, &options).unwrap();
    session().run(&program, plan, &RunOptions::default())
}

/// Whether the device has the images of a case. If it has not, the run says which, and nothing ran.
fn has_images(case: &Case) -> bool {
    let generated = case.kernels(Options::default());
    match run(&generated, &generated.plan(&case.given).unwrap()) {
        Ok(_) => true,
        Err(DeviceError::Unsupported { feature, .. }) => {
            assert!(feature.starts_with("CL_R") && feature.ends_with("which `X` needs"), "{feature}");
            false
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn one_and_two_channels_hold_the_values_of_every_type() {
    let mut n_run = 0;
    for channels in [1, 2] {
        for ty in TYPES {
            let case = sums(channels, ty);
            if has_images(&case) {
                case.agrees();
                n_run += 1;
            }
        }
    }
    eprintln!("{n_run} of 16 formats ran on {}", session().info().label());
}

#[test]
fn a_plan_asks_for_images_of_as_many_channels_as_a_texture_has() {
    for (channels, order) in [(1, Channels::R), (2, Channels::Rg), (4, Channels::Rgba)] {
        let case = sums(channels, ScalarType::Int16);
        let plan = case.kernels(Options::default()).plan(&case.given).unwrap();
        for spec in &plan.buffers {
            let MemoryKind::Image2d { format, .. } = spec.kind else { panic!("`{}` is no image", spec.name) };
            assert_eq!((format.channels, format.texel_bytes()), (order, 2 * u64::from(channels)));
            assert_eq!(spec.bytes, 5 * 7 * 2 * u64::from(channels));
        }
    }
}

#[test]
fn a_texel_of_one_channel_is_a_number_and_of_two_a_vector() {
    let source = |channels: u16| sums(channels, ScalarType::Float32).kernels(Options::default()).source;
    let (one, two) = (source(1), source(2));
    assert!(one.contains(".s0 + read_imagef(") && one.contains("(float4)(") && one.contains(", 0, 0, 0)"), "{one}");
    assert!(two.contains(".s01 + read_imagef(") && two.contains(", 0, 0)"), "{two}");
    assert!(!two.contains(", 0, 0, 0)"), "{two}");
}

#[test]
fn the_only_channel_is_read_by_its_number_and_wrong_kernels_are_told_apart() {
    let ty = ScalarType::Int32;
    let (x, b) = (texture_of(1, "X", ty, 5, 7), linear("B", ty, 35));
    let body = nest(5, 7, |i, j| {
        let zero = (Expr::from(i) + Expr::from(j)).floor_mod(Expr::int(1));
        Stmt::store(&b, vec![Expr::from(i) * Expr::int(7) + Expr::from(j)], channel(&x, i, j, zero))
    });
    let case = Case::new(function("number", &[&x, &b], body), &[values(ty, &[5, 7, 1])]);
    if !has_images(&case) {
        return;
    }
    case.agrees();
    assert!(case.tells(Options::default(), "lane == 0 ? texel.s0", "lane == 0 ? texel.s1"));
    let sums = sums(1, ty);
    assert!(sums.tells(Options::default(), ".s0", ".s1"));
    assert!(sums.tells(Options::default(), "(int2)(j, i)", "(int2)(i, j)"));
}

#[test]
fn a_store_to_one_of_two_channels_is_refused() {
    let ty = ScalarType::Float32;
    let (x, y) = (texture_of(2, "X", ty, 5, 7), texture_of(2, "Y", ty, 5, 7));
    for index in [Expr::int(1), ramp(0, 4), ramp(1, 2)] {
        let lanes = index.dtype().lanes;
        let body = nest(5, 7, |i, j| {
            let value = Expr::Broadcast { value: channel(&x, i, j, 0).into(), lanes };
            let value = if lanes == 1 { channel(&x, i, j, 0) } else { value };
            Stmt::store(&y, vec![i.into(), j.into(), index.clone()], value)
        });
        let func = function("part", &[&x, &y], body);
        let found = generate_with(validate(&func).unwrap(), &Options::default());
        assert_eq!(found.map(|_| ()).unwrap_err()[0].code, "opencl-channel-store");
    }
}
