//! Printers that are wrong in one place: the source is altered, built and run, and the comparison tells.

use tilewright::codegen::Options;
use tilewright_interp::Tensor;
use tilewright_ir::{DataType, Expr, ScalarType, SharedExpr};

use crate::textures::{Case, broadcast, channel, function, nest, numbers, store, texel, texture, values};

const PLAIN: Options = Options { checked: false, placed: false, aliased: false };
const CHECKED: Options = Options { checked: true, placed: false, aliased: false };

/// `Y[i, j] = X[i, j] + X[i, j, 2] * X[j, i, (i + j) % 4]`: all that a printer can get wrong about coordinates.
fn mixed(ty: ScalarType, input: &dyn Fn(ScalarType, &[u64]) -> Tensor) -> Case {
    let (x, y) = (texture("X", ty, 5, 5), texture("Y", ty, 5, 3));
    let body = nest(5, 3, |i, j| {
        let lane = (Expr::from(i) + Expr::from(j)).floor_mod(Expr::int(4));
        let scale = broadcast(channel(&x, i, j, 2)) * broadcast(channel(&x, j, i, lane));
        store(&y, i, j, texel(&x, i, j) + scale)
    });
    Case::new(function("mixed", &[&x, &y], body), &[input(ty, &[5, 5, 4])])
}

const ROW_COLUMN: &str = "(int2)(j, i)";

#[test]
fn coordinates_that_are_wrong_are_told_from_the_right_ones() {
    let case = mixed(ScalarType::Float32, &numbers);
    case.agrees();
    let read = format!("tw_sampler, {ROW_COLUMN}");
    let write = format!("write_imagef(Y, {ROW_COLUMN}");
    let wrong = [
        (read.as_str(), "tw_sampler, (int2)(i, j)", "x and y exchanged in reads"),
        (write.as_str(), "write_imagef(Y, (int2)(i, j)", "x and y exchanged in writes"),
        (read.as_str(), "tw_sampler, (int2)(j + 1, i)", "column off by one"),
        (read.as_str(), "tw_sampler, (int2)(j, i - 1)", "row off by one"),
        (write.as_str(), "write_imagef(Y, (int2)(j + 1, i)", "column off by one in writes"),
        (read.as_str(), "tw_sampler, (float2)(j - 0.5f, i)", "column off by half"),
        (read.as_str(), "tw_sampler, (float2)(j, i - 0.5f)", "row off by half"),
        ("(int2)(i, j)", "(int2)(j, i)", "the transposed read is not"),
    ];
    for (from, to, what) in wrong {
        assert!(case.tells(PLAIN, from, to), "{what}");
    }
}

#[test]
fn samplers_that_are_wrong_are_told_from_the_right_one() {
    let case = mixed(ScalarType::Float32, &numbers);
    let float = "tw_sampler, (float2)(j, i)";
    let generated = case.kernels(PLAIN);
    // Between texels, or a fraction of the image: both need coordinates of type float.
    let floats = generated.source.replace("tw_sampler, (int2)(j, i)", float);
    for (from, to) in [("CLK_FILTER_NEAREST", "CLK_FILTER_LINEAR"), ("COORDS_FALSE", "COORDS_TRUE")] {
        let broken = floats.replace(from, to);
        assert_ne!(broken, floats);
        let broken = broken.replace("tw_sampler, (int2)(i, j)", "tw_sampler, (float2)(i, j)");
        assert!(case.run(&generated, &broken).0.is_some(), "{to}");
    }
    // A texel is the same anywhere inside of its square.
    assert_eq!(case.run(&generated, &floats), (None, None));
}

#[test]
fn channels_that_are_wrong_are_told_from_the_right_ones() {
    let case = mixed(ScalarType::Float32, &numbers);
    let whole = "read_imagef(X, tw_sampler, (int2)(j, i)) + ";
    let wrong = [
        (whole, "read_imagef(X, tw_sampler, (int2)(j, i)).zyxw + ", "BGRA in reads"),
        (".s2", ".s3", "a known lane off by one"),
        ("lane == 0 ? texel.s0 : lane == 1", "lane == 1 ? texel.s0 : lane == 0", "lanes exchanged"),
        ("(i + j) % 4)", "(i + j) % 4 + 1)", "a lane that varies off by one"),
    ];
    for (from, to, what) in wrong {
        assert!(case.tells(PLAIN, from, to), "{what}");
    }
    let generated = case.kernels(PLAIN);
    let write = generated.source.lines().find(|line| line.contains("write_imagef")).unwrap();
    let (start, value) = write.split_once("(int2)(j, i), ").unwrap();
    let value = value.strip_suffix(");").unwrap();
    for (swizzle, what) in [("zyxw", "BGRA in writes"), ("xxxx", "one value in all lanes"), ("yzwx", "turned")] {
        let broken = format!("{start}(int2)(j, i), ({value}).{swizzle});");
        assert!(case.tells(PLAIN, write, &broken), "{what}");
    }
}

#[test]
fn types_that_are_wrong_are_told_from_the_right_ones() {
    let short = mixed(ScalarType::Int16, &values);
    short.agrees();
    let read = "convert_short4(read_imagei(X, tw_sampler, (int2)(j, i)))";
    let narrow = "convert_short4(convert_char4(read_imagei(X, tw_sampler, (int2)(j, i))))";
    assert!(short.tells(PLAIN, read, narrow), "converted to fewer bits on the way");
    assert!(short.tells(PLAIN, ", convert_int4(", ", -convert_int4("), "another value");
    let (x, y) = (texture("X", ScalarType::UInt32, 5, 7), texture("Y", ScalarType::Float32, 5, 7));
    let wide = DataType::scalar(ScalarType::Float32).with_lanes(4);
    let body = nest(5, 7, |i, j| store(&y, i, j, Expr::Cast(wide, SharedExpr::new(texel(&x, i, j)))));
    let unsigned = Case::new(function("floats", &[&x, &y], body), &[values(ScalarType::UInt32, &[5, 7, 4])]);
    unsigned.agrees();
    assert!(unsigned.tells(PLAIN, "read_imageui", "read_imagei"), "unsigned channels read as signed ones");
    let half = mixed(ScalarType::Float16, &values);
    half.agrees();
    assert!(
        half.tells(PLAIN, "return vload_half4(0, (private const half *)bits);", "return x;"),
        "not rounded after each operation"
    );
}

#[test]
fn a_row_pitch_that_is_wrong_is_told_from_the_right_one() {
    let mut case = mixed(ScalarType::Float32, &numbers);
    let generated = case.agrees();
    // Rows of 5 texels packed as if they were 6 apart.
    let bytes = case.given.contents.values_mut().next().unwrap();
    let rows: Vec<_> = bytes.chunks(5 * 16).flat_map(|row| row.iter().copied().chain([0; 16])).collect();
    *bytes = rows[..bytes.len()].to_vec().into();
    assert!(case.run(&generated, &generated.source).0.is_some());
}

#[test]
fn extents_exchanged_in_a_check_are_told_from_the_right_ones() {
    let (x, y) = (texture("X", ScalarType::Int8, 5, 7), texture("Y", ScalarType::Int8, 5, 7));
    let body = nest(5, 7, |i, j| store(&y, i, j, texel(&x, i, j)));
    let case = Case::new(function("copy", &[&x, &y], body), &[numbers(ScalarType::Int8, &[5, 7, 4])]);
    assert!(case.tells(CHECKED, "i, j, 0, 5, 7)", "i, j, 0, 7, 5)"), "height and width exchanged in a read");
    assert!(case.tells(CHECKED, "row < height", "row < height - 1"), "limit off by one");
    assert!(case.tells(CHECKED, "column >= 0", "column > 0"), "beginning off by one");
    assert!(
        case.tells(CHECKED, "(int2)((int)column, (int)row)", "(int2)((int)row, (int)column)"),
        "exchanged after the check"
    );
}

#[test]
fn an_edge_that_is_repeated_is_told_from_a_border_by_the_checked_mode() {
    // `Y[i, j] = X[i, j]` printed as the read of the next column: the edge gives what the last column has.
    let ty = ScalarType::Float32;
    let (x, y) = (texture("X", ty, 3, 1), texture("Y", ty, 3, 1));
    let body = nest(3, 1, |i, j| store(&y, i, j, texel(&x, i, j)));
    let case = Case::new(function("copy", &[&x, &y], body), &[numbers(ty, &[3, 1, 4])]);
    let generated = case.agrees();
    let edge = generated.source.replace("CLK_ADDRESS_CLAMP", "CLK_ADDRESS_CLAMP_TO_EDGE");
    let next = edge.replace("tw_sampler, (int2)(j, i)", "tw_sampler, (int2)(j + 1, i)");
    assert_ne!(next, edge);
    assert_eq!(case.run(&generated, &next), (None, None), "the edge hides it");
    assert!(case.tells(PLAIN, "tw_sampler, (int2)(j, i)", "tw_sampler, (int2)(j + 1, i)"), "the border does not");
    let checked = case.kernels(CHECKED);
    let next =
        checked.source.replace("CLK_ADDRESS_CLAMP", "CLK_ADDRESS_CLAMP_TO_EDGE").replace(", i, j, 0", ", i, j + 1, 0");
    assert_ne!(next, checked.source);
    assert!(case.run(&checked, &next).1.is_some(), "the check finds it");
}
