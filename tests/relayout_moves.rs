//! Moves of arrays: the program of each strategy is proved to do what both maps say, and the executor, the interpreter and the
//! kernel of the program leave the same bytes. Broken strategies are not proved.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a test fails by panicking, and its numbers are small"
)]

#[path = "../relayout/tests/placements/mod.rs"]
mod placements;

use placements::{blocked, map, paired, permuted, tiled};
use tilewright::algebra;
use tilewright::harness::engine::EngineFault;
use tilewright::harness::opencl::OpenCl;
use tilewright::pipeline::pair::validate;
use tilewright::pipeline::{self, Program};
use tilewright::relayout::program::{Elements, moved, plain, plain_of};
use tilewright::relayout::{Fill, Maps, Placement, Relayout, Sizes, Strategy, Tile, device};
use tilewright_interp::{Argument, Arguments, Config, Tensor, run};
use tilewright_ir::{Bindings, DataType, Expr, IndexMap, PrimFunc, validate as valid};
use tilewright_script::{Symbols, read_index_map, read_shape};
use tilewright_verify::{Config as JudgeConfig, Judge};

fn judge() -> Judge {
    Judge::new(JudgeConfig::default(), tilewright_search::strategies()).unwrap()
}

/// Relayouts with a tile of each kind, with and without padding, ragged and not.
fn cases() -> Vec<(&'static str, Relayout)> {
    let of = |extents: &[u64], from, to| Relayout { extents: extents.to_vec(), from, to };
    let (odd, even, image) = ([37, 155], [24, 40], [2, 10, 7, 9]);
    let (full, deep) = ([24, 256], [2, 16, 3, 8]);
    let nchw = permuted(&image, &[0, 1, 2, 3]);
    let nhwc = permuted(&image, &[0, 2, 3, 1]);
    let gaps = Placement {
        shape: vec![12, 10],
        map: map(&[5, 9], |index| vec![index[1].clone() + Expr::int(1), index[0].clone() * Expr::int(2)]),
    };
    vec![
        ("rows to tiles", of(&odd, permuted(&odd, &[0, 1]), tiled(&odd, (8, 128)))),
        ("tiles to rows", of(&odd, tiled(&odd, (8, 128)), permuted(&odd, &[0, 1]))),
        ("rows to small tiles", of(&even, permuted(&even, &[0, 1]), tiled(&even, (2, 2)))),
        ("rows to pairs of rows", of(&odd, permuted(&odd, &[0, 1]), paired(&odd))),
        ("columns to tiles", of(&odd, permuted(&odd, &[1, 0]), tiled(&odd, (8, 128)))),
        ("a transpose", of(&odd, permuted(&odd, &[0, 1]), permuted(&odd, &[1, 0]))),
        ("a transpose in blocks", of(&[5, 523], permuted(&[5, 523], &[0, 1]), permuted(&[5, 523], &[1, 0]))),
        ("NHWC to NCHW", of(&image, nhwc.clone(), nchw.clone())),
        ("NCHW to NHWC", of(&image, nchw.clone(), nhwc)),
        ("NCHW to NCHW4c", of(&image, nchw.clone(), blocked(&image, 4))),
        ("NCHW4c to NCHW", of(&image, blocked(&image, 4), nchw)),
        ("tiles to tiles", of(&odd, tiled(&odd, (8, 128)), tiled(&odd, (2, 4)))),
        ("full tiles", of(&full, permuted(&full, &[0, 1]), tiled(&full, (8, 128)))),
        ("columns to full tiles", of(&full, permuted(&full, &[1, 0]), tiled(&full, (8, 128)))),
        (
            "columns to ragged groups of tiles",
            of(&[77, 155], permuted(&[77, 155], &[1, 0]), tiled(&[77, 155], (8, 128))),
        ),
        ("a transpose of squares", of(&full, permuted(&full, &[0, 1]), permuted(&full, &[1, 0]))),
        ("deep NCHW to NHWC", of(&deep, permuted(&deep, &[0, 1, 2, 3]), permuted(&deep, &[0, 2, 3, 1]))),
        ("gaps", of(&[5, 9], permuted(&[5, 9], &[0, 1]), gaps)),
    ]
}

fn types() -> [DataType; 5] {
    ["uint8", "int16", "float32", "uint64", "uint32x4"].map(|name| name.parse().unwrap())
}

fn is_proved(before: &PrimFunc, after: &PrimFunc, judge: &Judge) -> bool {
    let judged = validate(before, after, &[], judge).unwrap();
    !judged.reports.is_empty() && judged.reports.iter().all(|report| report.verdict.is_proved())
}

/// A program with its parameters: A with the given bytes, B undefined.
fn arguments(func: &PrimFunc, dtype: DataType, src: &[u8]) -> Arguments {
    let shape = |position: usize| -> Vec<u64> {
        let extents = func.buffer_map[position].1.const_shape().unwrap();
        extents.iter().map(|&extent| u64::try_from(extent).unwrap()).collect()
    };
    let a = Tensor::from_bytes(dtype, &shape(0), src.to_vec()).unwrap();
    let b = Tensor::undefined(dtype, &shape(1)).unwrap();
    Arguments { params: vec![Argument::Tensor(a), Argument::Tensor(b)], ..Arguments::default() }
}

/// The bytes of B, all of which have to be defined.
fn result(arguments: &Arguments) -> Vec<u8> {
    let Argument::Tensor(b) = &arguments.params[1] else { panic!("B is a tensor") };
    assert!(b.is_all_defined(), "a slot of B was not written");
    b.bytes().to_vec()
}

#[test]
fn every_strategy_is_proved() {
    let judge = judge();
    for (name, relayout) in cases() {
        for dtype in types() {
            let bytes = dtype.scalar.bytes() * u64::from(dtype.lanes);
            let elements = Elements::zero(dtype);
            let strategy = Strategy::choose(&relayout, bytes).unwrap();
            let (before, after) = (plain(&relayout, &elements), moved(&strategy, &Sizes::known(&relayout), &elements));
            assert!(is_proved(&before, &before, &judge), "{name} {dtype}: the program against itself");
            let kernel = device::kernel(&strategy, &Sizes::known(&relayout), &elements);
            for after in [Some(after), kernel].into_iter().flatten() {
                assert!(
                    is_proved(&before, &after, &judge),
                    "{name} {dtype}: {}",
                    tilewright_script::print_func(&after)
                );
            }
        }
    }
}

#[test]
fn the_executor_the_interpreter_and_the_kernel_agree() {
    let judge = judge();
    let device = match OpenCl::open(None) {
        Ok(device) => Some(device),
        Err(EngineFault::Skipped(why)) => {
            eprintln!("skipped: the kernels, {why}");
            None
        }
        Err(other) => panic!("{other:?}"),
    };
    for (name, relayout) in cases() {
        for dtype in types() {
            let bytes = (dtype.scalar.bytes() * u64::from(dtype.lanes)) as usize;
            let elements = Elements::zero(dtype);
            let strategy = Strategy::choose(&relayout, bytes as u64).unwrap();
            let size = |placement: &Placement| placement.slots().unwrap() as usize * bytes;
            // No float of these bytes is a NaN, which need not keep its payload.
            let src: Vec<u8> = (0..size(&relayout.from)).map(|at| (at * 37 + at / 251) as u8 & 0x3F).collect();
            let mut dst = vec![0xFF; size(&relayout.to)];
            strategy.run_bytes(&src, &mut dst, &vec![0; bytes]).unwrap();
            let moved = moved(&strategy, &Sizes::known(&relayout), &elements);
            let func = device::kernel(&strategy, &Sizes::known(&relayout), &elements).unwrap_or_else(|| moved.clone());
            for func in [&plain(&relayout, &elements), &moved, &func] {
                let mut arguments = arguments(func, dtype, &src);
                run(valid(func).unwrap(), &mut arguments, &Config::default()).unwrap();
                assert!(result(&arguments) == dst, "{name} {dtype}: the interpreter");
            }
            // A driver takes long for many small kernels: one type for each way of moving is enough.
            let Some(device) = device.as_ref().filter(|_| [1, 4, 16].contains(&bytes)) else { continue };
            let program = Program { func, definition: None, written: None, assumed: vec![], scheduled: vec![] };
            let lowering = pipeline::lower(&program, &judge, false, &mut |_, _| {}).unwrap();
            let last = &lowering.stages.last().unwrap().func;
            let kernels = lowering.kernels.as_ref().unwrap().as_ref().unwrap();
            let mut arguments = arguments(last, dtype, &src);
            match device.run_kernels(last, kernels, &Bindings::new(), &mut arguments) {
                Ok(_) => assert!(result(&arguments) == dst, "{name} {dtype}: the kernel"),
                Err(fault) => panic!("{name} {dtype}: {fault:?}"),
            }
        }
    }
}

/// Strategies that do something else than the maps say.
fn twins(strategy: &Strategy) -> Vec<(&'static str, Strategy)> {
    let mut found = Vec::new();
    let mut add = |name, change: &dyn Fn(&mut Strategy)| {
        let mut twin = strategy.clone();
        change(&mut twin);
        if twin != *strategy {
            found.push((name, twin));
        }
    };
    add("the last iteration of the outermost loop is dropped", &|twin| twin.loops[0].extent -= 1);
    add("the last iteration of the innermost loop is dropped", &|twin| {
        if let Some(last) = twin.loops.last_mut() {
            last.extent -= 1;
        }
    });
    add("the padding is not filled", &|twin| twin.fill = Fill::None);
    add("one edge is not filled", &|twin| {
        if let Fill::Edges(edges) = &mut twin.fill {
            edges.pop();
        }
    });
    add("an edge begins too late", &|twin| {
        if let Fill::Edges(edges) = &mut twin.fill {
            edges[0].bound.limit += 1;
        }
    });
    add("an edge begins too early", &|twin| {
        if let Fill::Edges(edges) = &mut twin.fill {
            edges[0].bound.limit -= 1;
        }
    });
    add("a bound is too low", &|twin| {
        if let Some(bound) = twin.bounds.first_mut() {
            bound.limit -= 1;
        }
    });
    add("a bound is forgotten", &|twin| drop(twin.bounds.pop()));
    add("a step in the source is too long", &|twin| {
        let steps = &mut twin.loops[0].from;
        if let Some(step) = steps.iter_mut().find(|step| **step != 0) {
            *step += 1;
        }
    });
    add("two loops exchange their steps in the destination", &|twin| {
        let last = twin.loops.len() - 1;
        let steps = std::mem::take(&mut twin.loops[0].to);
        twin.loops[0].to = std::mem::replace(&mut twin.loops[last].to, steps);
    });
    add("the first element is elsewhere", &|twin| twin.to[0] += 1);
    found
}

#[test]
fn broken_strategies_are_not_proved() {
    let judge = judge();
    let mut tried = 0;
    for (name, relayout) in cases() {
        let elements = Elements::zero("float32".parse().unwrap());
        let strategy = Strategy::choose(&relayout, 4).unwrap();
        let before = plain(&relayout, &elements);
        for (what, twin) in twins(&strategy) {
            let kernel = device::kernel(&twin, &Sizes::known(&relayout), &elements);
            for after in [Some(moved(&twin, &Sizes::known(&relayout), &elements)), kernel].into_iter().flatten() {
                let text = tilewright_script::print_func(&after);
                assert!(!is_proved(&before, &after, &judge), "{name}: {what}\n{text}");
                tried += 1;
            }
        }
    }
    assert!(tried > 120, "only {tried} twins were tried");
}

/// Programs for kernels, with one part of the text changed.
#[test]
fn broken_kernels_are_not_proved() {
    let judge = judge();
    let changes = [
        ("R[i1 * 16 + i0]", "R[i1 * 16 + i0 + 1]"),
        ("= R[", "= R[1 + "),
        ("in T.unroll(16)", "in T.unroll(15)"),
        ("in T.vectorized(16)", "in T.vectorized(8)"),
        ("in T.vectorized(8)", "in T.vectorized(4)"),
        ("in T.unroll(8)", "in T.unroll(7)"),
        ("_t * 8", "_t * 9"),
        ("_u * 16", "_u * 8"),
        ("_t * 8", "_t * 4"),
        ("_t * 16", "_t * 15"),
    ];
    let mut tried = 0;
    for (name, relayout) in cases() {
        let elements = Elements::zero("float32".parse().unwrap());
        let strategy = Strategy::choose(&relayout, 4).unwrap();
        let Some(kernel) = device::kernel(&strategy, &Sizes::known(&relayout), &elements) else { continue };
        let text = tilewright_script::print_func(&kernel);
        // What is behind the condition for whole pieces: a stricter one is right, too.
        let (head, body) =
            text.split_at(text.find("        for ").or_else(|| text.find("T.alloc_buffer")).unwrap_or(0));
        for (part, other) in changes.iter().filter(|(part, _)| body.contains(part)) {
            let text = format!("{head}{}", body.replacen(part, other, 1));
            let twin = tilewright_script::read_module(&text).unwrap().funcs.remove(0);
            assert!(!is_proved(&plain(&relayout, &elements), &twin, &judge), "{name}: {part}\n{text}");
            tried += 1;
        }
    }
    assert!(tried > 15, "only {tried} twins were tried");
}

#[test]
fn the_cases_have_tiles_of_every_kind() {
    let strategies: Vec<Strategy> =
        cases().iter().map(|(_, relayout)| Strategy::choose(relayout, 4).unwrap()).collect();
    for tile in [Tile::Run, Tile::Transpose, Tile::Strided] {
        assert!(strategies.iter().any(|strategy| strategy.tile == tile), "{tile:?}");
    }
    assert!(strategies.iter().any(|strategy| strategy.is_wide));
    assert!(strategies.iter().any(|strategy| strategy.fill == Fill::Whole));
    assert!(strategies.iter().any(|strategy| matches!(strategy.fill, Fill::Edges(_))));
    assert!(strategies.iter().any(|strategy| strategy.fill == Fill::None));
}

/// Two index maps on a symbolic shape, with their physical shapes.
struct Symbolic {
    extents: Vec<Expr>,
    from: (IndexMap, Vec<Expr>),
    to: (IndexMap, Vec<Expr>),
}

impl Symbolic {
    fn new(shape: &str, from: &str, to: &str) -> Self {
        let mut symbols = Symbols::default();
        let extents = read_shape(shape, &mut symbols).unwrap();
        let mut side = |text: &str| {
            let map = read_index_map(text, Some(&extents), &mut symbols).unwrap();
            let shape = algebra::physical_shape(&map, &[]).unwrap().extents;
            (map, shape)
        };
        let (from, to) = (side(from), side(to));
        Self { extents, from, to }
    }

    fn maps(&self) -> Maps<'_> {
        Maps { extents: &self.extents, from: (&self.from.0, &self.from.1), to: (&self.to.0, &self.to.1) }
    }
}

const ROWS: &str = "lambda i, j: [i, j]";

/// Moves for all extents, whether each slot gets an element, and whether the program of the kernel is proved, too.
fn symbolic_cases() -> Vec<(&'static str, Symbolic, bool, bool)> {
    let image = "lambda n, c, h, w: [n, c, h, w]";
    let nhwc = "lambda n, c, h, w: [n, h, w, c]";
    let blocked = "lambda n, c, h, w: [n, c // 4, h, w, c % 4]";
    vec![
        ("a transpose", Symbolic::new("n,m", ROWS, "lambda i, j: [j, i]"), true, true),
        ("NHWC to NCHW", Symbolic::new("n,c,h,w", nhwc, image), true, true),
        ("NCHW to NHWC", Symbolic::new("n,c,h,w", image, nhwc), true, true),
        ("a batch of images", Symbolic::new("n,3,5,7", image, nhwc), true, true),
        ("NCHW to NCHW4c, padded", Symbolic::new("n,c,h,w", image, blocked), false, true),
        ("NCHW to NCHW4c", Symbolic::new("n,4*c,h,w", image, blocked), true, true),
        ("rows to tiles", Symbolic::new("n,m", ROWS, "lambda i, j: [i // 8, j // 128, i % 8, j % 128]"), false, true),
        ("columns to flat rows", Symbolic::new("n,m", "lambda i, j: [j, i]", "lambda i, j: [i * m + j]"), true, false),
    ]
}

#[test]
fn strategies_for_all_extents_are_proved() {
    let judge = judge();
    let elements = Elements::zero("float32".parse().unwrap());
    for (name, case, is_full, has_kernel) in symbolic_cases() {
        let before = plain_of(case.maps(), &elements, is_full);
        assert!(is_proved(&before, &before, &judge), "{name}: the program against itself");
        let (strategy, sizes) = case.maps().choose(4).unwrap();
        // Tiles of flat rows are left open, and their kernel is that of the program.
        let kernel = device::kernel(&strategy, &sizes, &elements).filter(|_| has_kernel);
        let mut tried = 0;
        for after in [Some(moved(&strategy, &sizes, &elements)), kernel].into_iter().flatten() {
            let text = tilewright_script::print_func(&after);
            assert!(is_proved(&before, &after, &judge), "{name}\n{text}");
        }
        for (what, twin) in twins(&strategy) {
            let kernel = device::kernel(&twin, &sizes, &elements);
            for after in [Some(moved(&twin, &sizes, &elements)), kernel].into_iter().flatten() {
                let text = tilewright_script::print_func(&after);
                assert!(!is_proved(&before, &after, &judge), "{name}: {what}\n{text}");
                tried += 1;
            }
        }
        assert!(tried >= 5, "only {tried} twins of {name} were tried");
    }
}
