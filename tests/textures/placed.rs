//! Kernels on parts of pools: origins are added, extents stay those of the tensor, and neighbours keep what they have.

use tilewright::codegen::{Generated, Options, Origin, Placement, REPORT_BYTES};
use tilewright_device::{BufferSpec, ChannelType, LaunchPlan};
use tilewright_interp::Tensor;
use tilewright_ir::{Bindings, Expr, PrimFunc, ScalarType, Stmt};

use crate::textures::{
    Case, arguments, four, function, kernels, linear, nest, numbers, run_plan, store, texel, texture,
};

const PLACED: Options = Options { checked: false, placed: true, aliased: false };
const BOTH: Options = Options { checked: true, placed: true, aliased: false };
/// Texels of the pools, and where X and Y begin in them: column and row.
const POOL: [usize; 2] = [16, 12];
const X: [usize; 2] = [3, 2];
const Y: [usize; 2] = [8, 5];
/// Where A begins in its pool, in bytes, and how large that is.
const A: (usize, usize) = (68, 1000);

/// `Y[i, j] = X[i, j] + A[..]` for 5 rows and 7 columns.
fn sum() -> PrimFunc {
    let ty = ScalarType::Int16;
    let (x, a, y) = (texture("X", ty, 5, 7), linear("A", ty, 140), texture("Y", ty, 5, 7));
    let body = nest(5, 7, |i, j| store(&y, i, j, texel(&x, i, j) + Expr::load(&a, vec![four(i, j, 7)])));
    function("sum", &[&x, &a, &y], body)
}

fn inputs() -> [Tensor; 2] {
    [numbers(ScalarType::Int16, &[5, 7, 4]), numbers(ScalarType::Int16, &[140])]
}

/// A pool of texels in which a tensor begins somewhere; all else is `fill`.
fn pool(tensor: Option<&Tensor>, [x, y]: [usize; 2], fill: u8) -> Vec<u8> {
    let mut bytes = vec![fill; POOL[0] * POOL[1] * 8];
    for (row, texels) in tensor.iter().flat_map(|tensor| tensor.bytes().chunks(7 * 8)).enumerate() {
        let start = ((y + row) * POOL[0] + x) * 8;
        bytes[start..start + texels.len()].copy_from_slice(texels);
    }
    bytes
}

/// What is in the two pools, of Y and of A, and in the report after a run.
fn run(generated: &Generated, source: &str) -> Vec<Option<Vec<u8>>> {
    let [x, a] = inputs();
    let mut linear = vec![0x55; A.1];
    linear[A.0..A.0 + 280].copy_from_slice(a.bytes());
    let image = |name: &str| BufferSpec::image2d(name, POOL[0] as u64, POOL[1] as u64, ChannelType::I16);
    let buffers = vec![
        image("pool of Y").with_data(pool(None, Y, 0x77)).read_back(),
        BufferSpec::new("pool of A", A.1 as u64).with_data(linear).read_back(),
        image("pool of X").with_data(pool(Some(&x), X, 0x33)),
        BufferSpec::new("report", REPORT_BYTES).filled(0).read_back(),
    ];
    let at = |[x, y]: [usize; 2]| Origin::Texel { x: x as u64, y: y as u64 };
    let placements = [
        Placement { memory: 2, origin: at(X) },
        Placement { memory: 1, origin: Origin::Byte(A.0 as u64) },
        Placement { memory: 0, origin: at(Y) },
    ];
    let given = arguments(&sum(), &[], &[]);
    let launches = generated.launches(&given, &placements, Some(3)).unwrap();
    run_plan(generated, source, &LaunchPlan { buffers, launches })
}

/// The pool of Y if all is right.
fn expected() -> Vec<u8> {
    let case = Case::new(sum(), &inputs());
    case.agrees();
    pool(Some(&case.expected["Y"]), Y, 0x77)
}

#[test]
fn tensors_are_parts_of_pools_and_neighbours_keep_what_they_have() {
    let expected = expected();
    for options in [PLACED, BOTH] {
        let generated = kernels(&sum(), options);
        let left = run(&generated, &generated.source);
        assert_eq!(left[0].as_ref(), Some(&expected), "{}", generated.source);
        let linear = left[1].as_ref().unwrap();
        assert!(linear[..A.0].iter().chain(&linear[A.0 + 280..]).all(|&byte| byte == 0x55));
        assert_eq!(left[3], Some(vec![0; 16]));
    }
}

#[test]
fn the_origin_follows_its_memory_in_the_parameters() {
    let generated = kernels(&sum(), PLACED);
    let parameters = "kernel void sum_0(read_only image2d_t X, const int2 X_origin, global const short *restrict A_pool, \
                      const long A_offset, write_only image2d_t Y, const int2 Y_origin) {";
    assert!(generated.source.contains(parameters), "{}", generated.source);
    assert!(generated.source.contains("(int2)(j + X_origin.x, i + X_origin.y)"), "{}", generated.source);
}

#[test]
fn origins_that_are_wrong_are_told_from_the_right_ones() {
    let expected = expected();
    let generated = kernels(&sum(), PLACED);
    for (from, to) in [
        ("(int2)(j + X_origin.x, i + X_origin.y)", "(int2)(j + X_origin.y, i + X_origin.x)"),
        ("(int2)(j + Y_origin.x, i + Y_origin.y)", "(int2)(j, i)"),
        ("(int2)(j + Y_origin.x, i + Y_origin.y)", "(int2)(j + Y_origin.x, i)"),
        ("A_pool + A_offset", "A_pool + A_offset * 2"),
        ("(global const char *)A_pool + A_offset", "(global const char *)(A_pool + A_offset)"),
    ] {
        let broken = generated.source.replace(from, to);
        assert_ne!(broken, generated.source, "{from}");
        assert_ne!(run(&generated, &broken)[0].as_ref(), Some(&expected), "{to}");
    }
}

#[test]
fn a_neighbour_in_the_pool_is_outside() {
    let ty = ScalarType::Int16;
    let (x, a, y) = (texture("X", ty, 5, 7), linear("A", ty, 140), texture("Y", ty, 5, 7));
    let body = nest(5, 7, |i, j| {
        let next = texel(&x, i, Expr::from(j) + Expr::int(1));
        Stmt::seq(vec![store(&y, i, j, next + Expr::load(&a, vec![four(i, j, 7)]))])
    });
    let func = function("sum", &[&x, &a, &y], body);
    let generated = kernels(&func, BOTH);
    let left = run(&generated, &generated.source);
    let outside = generated.metadata.outside_texture(left[3].as_ref().unwrap(), &Bindings::new());
    let outside = outside.expect("column 7 of X is in the pool but not in X");
    assert_eq!((outside.column, outside.width), (7, Some(7)));
}

#[test]
fn places_that_kernels_cannot_reach_are_refused() {
    let start = Placement { memory: 0, origin: Origin::Start };
    let texel = |x| Placement { memory: 0, origin: Origin::Texel { x, y: 0 } };
    let byte = |at| Placement { memory: 0, origin: Origin::Byte(at) };
    let given = arguments(&sum(), &[], &[]);
    let placed = kernels(&sum(), PLACED);
    let message = |generated: &Generated, placements: &[Placement]| {
        generated.launches(&given, placements, None).map(|_| ()).map_err(|error| error.message)
    };
    assert_eq!(message(&placed, &[start, start, start]), Ok(()));
    assert!(message(&placed, &[start, start]).unwrap_err().contains("2 places are given for 3 buffers"));
    assert!(message(&placed, &[byte(8), start, start]).unwrap_err().contains("at a texel, not a byte"));
    assert!(message(&placed, &[start, texel(1), start]).unwrap_err().contains("at a byte, not a texel"));
    assert!(message(&placed, &[texel(1 << 31), start, start]).unwrap_err().contains("too far"));
    let plain = kernels(&sum(), Options::default());
    assert_eq!(message(&plain, &[start, start, start]), Ok(()));
    assert!(message(&plain, &[texel(1), start, start]).unwrap_err().contains("the kernels are not placed"));
    assert!(message(&kernels(&sum(), BOTH), &[start, start, start]).unwrap_err().contains("report"));
}
