//! Blocks of S-TIR: what they say of themselves is proved where it holds, and false claims are not; they mean what TVM lowers them to.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fmt::Write as _;

use tilewright::passes::{lower_blocks, simplify};
use tilewright::pipeline::pair::validate;
use tilewright_compiler::blocks::inverses;
use tilewright_ir::equal::funcs_equal;
use tilewright_ir::{Block, PrimFunc};
use tilewright_verify::{Config, Judge, Report, Verdict};

fn read(text: &str) -> PrimFunc {
    tilewright_script::read_module(text).unwrap_or_else(|error| panic!("{error:?}\n{text}")).funcs.remove(0)
}

fn judge() -> Judge {
    Judge::new(Config::default(), tilewright_search::strategies()).unwrap()
}

fn open(reports: &[Report]) -> Vec<String> {
    let open = reports.iter().filter(|report| !report.verdict.is_proved());
    open.map(|report| format!("{} {}: {}", report.obligation, report.subject, report.verdict)).collect()
}

/// What is open about the claims of the blocks.
fn claims(text: &str) -> Vec<String> {
    let func = read(text);
    let reports = judge().check_blocks(&func, &inverses(&func));
    assert!(!reports.is_empty());
    open(&reports)
}

/// The claims are proved, the lowering is proved, and what is printed is read as the same program.
#[track_caller]
fn holds(text: &str) {
    assert_eq!(claims(text), Vec::<String>::new(), "{text}");
    let func = read(text);
    let lowered = lower_blocks(&func).unwrap();
    assert_eq!(open(&judge().check_pass(&func, &lowered.func, &lowered.evidence)), Vec::<String>::new(), "{text}");
    let mut n_blocks = 0;
    lowered.func.body.walk(&mut |stmt| n_blocks += usize::from(Block::of(stmt).is_some()));
    assert_eq!(n_blocks, 0);
    let printed = tilewright_script::print_func(&func);
    assert!(funcs_equal(&read(&printed), &func, true), "{printed}");
}

/// Each twin makes a false claim, about this obligation.
#[track_caller]
fn fails(text: &str, twins: &[(&str, &str, &str)]) {
    holds(text);
    for (right, wrong, obligation) in twins {
        assert!(text.contains(right), "{right}");
        let open = claims(&text.replacen(right, wrong, 1));
        assert!(open.iter().any(|line| line.starts_with(obligation)), "{right} -> {wrong}: {open:?}");
    }
}

const PRODUCT: &str = r#"
@T.prim_func(s_tir=True)
def main(A: T.Buffer((13, 11), "float32"), B: T.Buffer((11, 7), "float32"), C: T.Buffer((13, 7), "float32")):
    # with T.sblock("root"):
    for i_0, j, k_0, i_1, k_1 in T.grid(3, 7, 3, 5, 4):
        with T.sblock("C"):
            v_i = T.axis.spatial(13, i_0 * 5 + i_1)
            v_j = T.axis.spatial(7, j)
            v_k = T.axis.reduce(11, k_0 * 4 + k_1)
            T.where(i_0 * 5 + i_1 < 13 and k_0 * 4 + k_1 < 11)
            T.reads(A[v_i, v_k], B[v_k, v_j])
            T.writes(C[v_i, v_j])
            with T.init():
                C[v_i, v_j] = T.float32(0)
            C[v_i, v_j] = C[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
"#;

#[test]
fn a_tiled_product_with_ragged_edges() {
    fails(
        PRODUCT,
        &[
            ("spatial(13,", "spatial(12,", "bounds"),
            ("i_0 * 5 + i_1 < 13 and ", "", "bounds"),
            ("reduce(11,", "reduce(10,", "bounds"),
            ("reduce(11,", "reduce(12,", "iteration"),
            ("k_0 * 4 + k_1)", "k_0 * 3 + k_1)", "iteration"),
            ("k_0 * 4 + k_1)", "10 - (k_0 * 4 + k_1))", "order"),
            ("and k_0 * 4 + k_1 < 11", "and k_0 * 4 + k_1 < 10", "iteration"),
            ("T.reads(A[v_i, v_k]", "T.reads(A[v_i, 0]", "region"),
            ("T.reads(A[v_i, v_k], ", "T.reads(", "region"),
            ("T.writes(C[v_i, v_j])", "T.writes(C[0:12, v_j])", "region"),
            ("T.writes(C[v_i, v_j])", "T.writes()", "region"),
        ],
    );
}

#[test]
fn a_block_means_what_it_is_lowered_to() {
    let naive = PRODUCT.replace("i_0, j, k_0, i_1, k_1 in T.grid(3, 7, 3, 5, 4)", "i, j, k in T.grid(13, 7, 11)");
    let naive = naive.replace("i_0 * 5 + i_1", "i").replace("k_0 * 4 + k_1", "k");
    let naive = naive.replace("            T.where(i < 13 and k < 11)\n", "");
    holds(&naive);
    let verdict = |after: &str| {
        let judged = validate(&read(&naive), &read(after), &[], &judge()).unwrap();
        judged.reports.iter().map(|report| report.verdict.clone()).max().unwrap()
    };
    assert!(verdict(&naive).is_proved());
    assert!(verdict(PRODUCT).is_proved());
    // The initialisation comes once more in the last iteration; one iteration is left out.
    assert!(matches!(verdict(&PRODUCT.replace("k_0 * 4 + k_1)", "10 - (k_0 * 4 + k_1))")), Verdict::Refuted(_)));
    assert!(matches!(verdict(&PRODUCT.replace("k_1 < 11", "k_1 < 10")), Verdict::Refuted(_)));
}

#[test]
fn extents_may_be_symbolic() {
    fails(
        r#"
@T.prim_func
def main(a: T.handle, c: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(a, (n, m), "float32")
    C = T.match_buffer(c, (n,), "float32")
    for x, k_0, k_1 in T.grid(n, (m + 3) // 4, 4):
        with T.sblock("C"):
            i = T.axis.spatial(n, x)
            k = T.axis.reduce(m, k_0 * 4 + k_1)
            T.where(k_0 * 4 + k_1 < m)
            T.reads(A[i, k])
            T.writes(C[i])
            with T.init():
                C[i] = T.float32(0)
            C[i] = C[i] + A[i, k]
"#,
        &[
            ("reduce(m,", "reduce(m - 1,", "bounds"),
            ("reduce(m,", "reduce(m + 1,", "iteration"),
            ("(m + 3) // 4, 4)", "m // 4, 4)", "iteration"),
            ("T.reads(A[i, k])", "T.reads(A[i, 0:m - 1])", "region"),
        ],
    );
}

#[test]
fn a_tile_of_a_consumer_computes_elements_again() {
    fails(
        r#"
@T.prim_func
def main(A: T.Buffer((34, 5), "float32"), B: T.Buffer((32,), "float32")):
    with T.sblock("root"):
        T.reads(A[0:34, 0:5])
        T.writes(B[0:32])
        P = T.sblock_alloc_buffer((34,))
        for i_0 in range(4):
            for a, x in T.grid(10, 5):
                with T.sblock("P"):
                    i = T.axis.spatial(34, i_0 * 8 + a)
                    k = T.axis.reduce(5, x)
                    T.reads(A[i, k])
                    T.writes(P[i])
                    with T.init():
                        P[i] = T.float32(0)
                    P[i] = P[i] + A[i, k]
            for i_1 in range(8):
                with T.sblock("B"):
                    j = T.axis.spatial(32, i_0 * 8 + i_1)
                    T.reads(P[j:j + 3])
                    T.writes(B[j])
                    B[j] = P[j] + P[j + 1] + P[j + 2]
"#,
        &[
            ("i_0 * 8 + a)", "i_0 * 9 + a)", "bounds"),
            ("T.reads(P[j:j + 3])", "T.reads(P[j:j + 2])", "region"),
            ("T.reads(P[j:j + 3])", "T.reads(P[j], P[j + 1])", "region"),
            ("T.reads(A[0:34, 0:5])", "T.reads(A[0:33, 0:5])", "region"),
            ("T.axis.reduce(5, x)", "T.axis.reduce(5, 4 - x)", "order"),
            ("T.axis.reduce(5, x)", "T.axis.reduce(6, x)", "iteration"),
            ("T.axis.reduce(5, x)", "T.axis.reduce(5, 0)", "iteration"),
        ],
    );
}

#[test]
fn a_decomposed_reduction_and_domains_that_do_not_begin_at_zero() {
    fails(
        r#"
@T.prim_func
def main(A: T.Buffer((9, 6), "int32"), C: T.Buffer((9,), "int32")):
    for x in T.parallel(7):
        with T.sblock("C_init"):
            i = T.axis.spatial((2, 9), x + 2)
            T.reads()
            T.writes(C[i])
            C[i] = 0
        for y in range(1, 6):
            with T.sblock("C_update"):
                i = T.axis.spatial((2, 9), x + 2)
                k = T.axis.reduce((1, 6), y)
                T.reads([C[i], A[i, k]])
                T.writes([C[i]])
                T.sblock_attr({"meta_schedule.tiling": 2, "text": "x"})
                C[i] = C[i] + A[i, k]
"#,
        &[
            ("(2, 9), x + 2)\n            T.reads()", "(3, 9), x + 2)\n            T.reads()", "bounds"),
            ("T.writes(C[i])\n            C[i] = 0", "T.writes()\n            C[i] = 0", "region"),
            ("reduce((1, 6), y)", "reduce((0, 6), y)", "iteration"),
            ("T.reads([C[i], A[i, k]])", "T.reads([A[i, k]])", "region"),
        ],
    );
}

#[test]
fn a_loop_around_the_outer_block_has_one_value_in_a_round() {
    let text = r#"
@T.prim_func
def main(A: T.Buffer((3, 5), "float32"), C: T.Buffer((3,), "float32")):
    for x, y in T.grid(3, 5):
        with T.sblock("outer"):
            i = T.axis.spatial(3, x)
            with T.sblock("C"):
                r = T.axis.reduce(5, y)
                C[i] = C[i] + A[i, r]
"#;
    let open = claims(text);
    assert!(open.iter().any(|line| line.starts_with("iteration reduced axes of block C")), "{open:?}");
}

#[test]
fn axes_may_be_loops_and_conditions_of_the_block_are_no_part_of_it() {
    holds(
        r#"
@T.prim_func
def main(A: T.Buffer((6,), "float32"), J: T.Buffer((6,), "int32"), C: T.Buffer((6,), "float32")):
    for x in T.serial(1, 5):
        with T.block("C"):
            i = T.axis.remap("S", [x])
            T.reads(A[0:6], J)
            T.writes(C[i])
            if J[i] >= 0 and J[i] < 6:
                C[i] = A[J[i]]
"#,
    );
}

#[test]
fn each_instance_of_a_domain_runs_once() {
    fails(
        r#"
@T.prim_func
def main(A: T.Buffer((37, 5), "float32"), C: T.Buffer((37, 5), "float32")):
    for i_0, j, i_1 in T.grid(5, 5, 8):
        with T.sblock("C"):
            v_i = T.axis.spatial(37, i_0 * 8 + i_1)
            v_j = T.axis.spatial(5, j)
            T.where(i_0 * 8 + i_1 < 37)
            C[v_i, v_j] = A[v_i, v_j]
"#,
        &[
            // What a tutorial of TVM calls an error: a loop that is one iteration short.
            ("T.grid(5, 5, 8)", "T.grid(5, 4, 8)", "iteration domain"),
            ("T.grid(5, 5, 8)", "T.grid(5, 5, 7)", "iteration domain"),
            ("i_1 < 37", "i_1 < 36", "iteration domain"),
            ("i_0 * 8 + i_1)", "i_0 * 7 + i_1)", "iteration instances"),
            ("T.axis.spatial(5, j)", "T.axis.spatial(5, j // 2)", "iteration instances"),
            ("T.axis.spatial(5, j)", "T.axis.spatial(5, j // 2)", "iteration domain"),
            ("T.axis.spatial(5, j)", "T.axis.spatial(6, j)", "iteration domain"),
            ("T.axis.spatial(5, j)", "T.axis.spatial((-1, 5), j)", "iteration domain"),
        ],
    );
    // A reduction that is computed again for no reason, and one whose rows do not all run.
    fails(
        PRODUCT,
        &[
            (
                "i_0, j, k_0, i_1, k_1 in T.grid(3, 7,",
                "i_0, t, j, k_0, i_1, k_1 in T.grid(3, 2, 7,",
                "iteration instances",
            ),
            ("i_0, j, k_0, i_1, k_1 in T.grid(3, 7,", "i_0, j, k_0, i_1, k_1 in T.grid(3, 6,", "iteration domain"),
            ("i_0 * 5 + i_1 < 13", "i_0 * 5 + i_1 < 12", "iteration domain"),
        ],
    );
}

#[test]
fn memory_of_the_function_is_computed_as_far_as_it_is_read() {
    // What `compute_at` leaves of a block with 40 elements, of which the consumer reads 34.
    let tiles = r#"
@T.prim_func
def main(A: T.Buffer((40,), "float32"), B: T.Buffer((32,), "float32")):
    P = T.alloc_buffer((40,))
    for i_0 in range(4):
        for a in range(10):
            with T.sblock("P"):
                i = T.axis.spatial(40, i_0 * 8 + a)
                P[i] = A[i] * T.float32(2)
        for i_1 in range(8):
            with T.sblock("B"):
                j = T.axis.spatial(32, i_0 * 8 + i_1)
                B[j] = P[j] + P[j + 2]
"#;
    let short = ("range(10)", "range(9)", "iteration domain of block P");
    let far = ("P[j + 2]", "P[j + 3]", "iteration domain of block P");
    let moved = ("i_0 * 8 + a)", "i_0 * 8 + a + 1)", "iteration domain of block P");
    let twice = ("for a in range(10)", "for a, t in T.grid(10, 2)", "iteration instances of block P");
    fails(tiles, &[short, far, moved, twice]);
    // What `cache_read` of a part of a buffer makes: the domain is the buffer.
    let copy = r#"
@T.prim_func
def main(A: T.Buffer((40, 7), "float32"), B: T.Buffer((8, 7), "float32")):
    A_local = T.alloc_buffer((40, 7), scope="local")
    for x, y in T.grid(17, 7):
        with T.sblock("A_local"):
            v0 = T.axis.spatial(40, x + 3)
            v1 = T.axis.spatial(7, y)
            A_local[v0, v1] = A[v0, v1]
    for i, j in T.grid(8, 7):
        with T.sblock("B"):
            v_i, v_j = T.axis.remap("SS", [i, j])
            B[v_i, v_j] = A_local[v_i * 2 + 3, v_j] + A_local[19, 6 - v_j]
"#;
    fails(
        copy,
        &[
            ("T.grid(17, 7)", "T.grid(16, 7)", "iteration domain of block A_local"),
            ("x + 3)", "x + 4)", "iteration domain of block A_local"),
            ("A_local[19,", "A_local[20,", "iteration domain of block A_local"),
        ],
    );
}

#[test]
fn a_reader_outside_of_a_condition_needs_what_runs_behind_it() {
    fails(
        r#"
@T.prim_func
def main(A: T.Buffer((12,), "float32"), B: T.Buffer((12,), "float32"), n: T.int32):
    P = T.alloc_buffer((12,))
    for x in range(4):
        if n > 3:
            for y in range(3):
                with T.sblock("P"):
                    i = T.axis.spatial(16, x * 3 + y)
                    P[i] = A[i]
        if n > 3:
            for y in range(3):
                B[x * 3 + y] = P[x * 3 + y]
"#,
        &[
            (
                "        if n > 3:\n            for y in range(3):\n                B",
                "        if n > 2:\n            for y in range(3):\n                B",
                "iteration domain",
            ),
            (
                "        if n > 3:\n            for y in range(3):\n                with",
                "        if n > 3 and x > 0:\n            for y in range(3):\n                with",
                "iteration domain",
            ),
        ],
    );
}

#[test]
fn scanned_axes_run_upwards_and_not_at_once() {
    fails(
        r#"
@T.prim_func
def main(A: T.Buffer((6, 12), "float32"), C: T.Buffer((6, 13), "float32")):
    for x in T.parallel(6):
        for t_0, t_1 in T.grid(3, 4):
            with T.sblock("C"):
                i = T.axis.spatial(6, x)
                t = T.axis.scan((1, 13), t_0 * 4 + t_1 + 1)
                T.reads(C[i, t - 1], A[i, t - 1])
                T.writes(C[i, t])
                C[i, t] = C[i, t - 1] + A[i, t - 1]
"#,
        &[
            ("t_0 * 4 + t_1 + 1)", "12 - t_0 * 4 - t_1)", "order scanned axes"),
            ("t_0 * 4 + t_1 + 1)", "t_0 + t_1 * 3 + 1)", "order scanned axes"),
            ("for t_0, t_1 in T.grid(3, 4):", "for t_1, t_0 in T.grid(4, 3):", "order scanned axes"),
            ("for t_0, t_1 in T.grid(3, 4):", "for t_0, t_1 in T.grid(3, 3):", "iteration reduced and scanned axes"),
            (
                "for t_0, t_1 in T.grid(3, 4):\n            with",
                "for t_0 in range(3):\n          for t_1 in T.parallel(4):\n            with",
                "order scanned axes",
            ),
            (
                "for x in T.parallel(6):\n        for t_0, t_1 in T.grid(3, 4):\n            with",
                "for t_0 in T.parallel(3):\n        for x, t_1 in T.grid(6, 4):\n            with",
                "order scanned axes",
            ),
        ],
    );
}

#[test]
fn opaque_axes_say_nothing_about_their_instances() {
    holds(
        r#"
@T.prim_func
def main(C: T.Buffer((6,), "float32")):
    for x, y in T.grid(6, 2):
        with T.sblock("C"):
            i = T.axis.opaque(8, x)
            C[i] = T.float32(0)
"#,
    );
}

#[test]
fn a_block_may_have_many_axes() {
    let mut text = "@T.prim_func\ndef main(A: T.Buffer((16,), \"int32\")):\n    for i in range(16):\n".to_owned();
    text += "        with T.sblock(\"C\"):\n";
    for axis in 0..1000 {
        let domain = if axis == 500 { "8, 16" } else { "16" };
        writeln!(text, "            v{axis} = T.axis.spatial({domain}, i)").unwrap();
    }
    text = text.replace("spatial(8, 16, i)", "spatial((8, 24), i + 8)") + "            A[v0] = 1\n";
    let open = claims(&text);
    // The axes are one number in sixteen places: most of the domain never runs.
    assert!(open.iter().all(|line| line.starts_with("iteration domain")), "{open:?}");
}

#[test]
fn a_part_of_a_buffer_has_the_elements_of_the_buffer() {
    let text = r#"
@T.prim_func
def main(A: T.Buffer((12, 10), "float32"), C: T.Buffer((12, 10), "float32")):
    for x, y in T.grid(3, 2):
        with T.sblock("C"):
            i, j = T.axis.remap("SS", [x, y])
            T.reads(A[i * 4:i * 4 + 4, j * 5 + 1:j * 5 + 4])
            T.writes(C[i * 4:i * 4 + 4, j * 5 + 1])
            P = T.match_buffer(A[i * 4:i * 4 + 4, j * 5 + 1:j * 5 + 4], (4, 3), strides=("s0", "s1"), offset_factor=1)
            Q = T.match_buffer(C[i * 4 + 2, j * 5 + 1:j * 5 + 2], (1,), "float32")
            R = T.match_buffer(C[i * 4:i * 4 + 4, j * 5 + 1], (4, 1))
            for u in range(4):
                with T.sblock("inner"):
                    v = T.axis.spatial(4, u)
                    T.reads(P[v, 0:3])
                    T.writes(R[v, 0])
                    R[v, 0] = P[v, 0] + P[v, 2]
            Q[0] += T.float32(1)
"#;
    let twins = [
        ("T.reads(P[v, 0:3])", "T.reads(P[v, 0:2])", "region"),
        ("T.reads(P[v, 0:3])", "T.reads(P[v, 1:3])", "region"),
        ("P[v, 2]", "P[v, 3]", "region"),
        ("Q[0] +=", "Q[1] +=", "region"),
        ("C[i * 4 + 2, j * 5 + 1:j * 5 + 2]", "C[i * 4 + 4, j * 5 + 1:j * 5 + 2]", "region"),
    ];
    // What is updated is an input of a block without an initialisation.
    let text = text.replace("T.reads(A[i", "T.reads(C[i * 4 + 2, j * 5 + 1], A[i");
    fails(&text, &twins);
    let plain = r#"
@T.prim_func
def main(A: T.Buffer((12, 10), "float32"), C: T.Buffer((12, 10), "float32")):
    for x, y in T.grid(3, 2):
        for u in range(4):
            C[x * 4 + u, y * 5 + 1] = A[x * 4 + u, y * 5 + 1] + A[x * 4 + u, y * 5 + 3]
        C[x * 4 + 2, y * 5 + 1] = C[x * 4 + 2, y * 5 + 1] + T.float32(1)
"#;
    let lowered = lower_blocks(&read(&text)).unwrap();
    let printed = |func: &PrimFunc| tilewright_script::print_func(&simplify(func).unwrap().func);
    assert_eq!(printed(&lowered.func), printed(&read(plain)));
}

#[test]
fn what_is_no_block_is_one_error_at_its_place() {
    let errors = |body: &str| {
        let text = format!("@T.prim_func\ndef main(C: T.Buffer((6,), \"float32\")):\n    for x in range(6):\n{body}\n");
        let faults = tilewright_script::read_module(&text).unwrap_err();
        faults.iter().map(|fault| fault.message.clone()).collect::<Vec<_>>()
    };
    let block = "        with T.sblock(\"C\"):\n            ";
    let one = |lines: &str, message: &str| {
        assert_eq!(errors(&format!("{block}{}", lines.replace('\n', "\n            "))), [message], "{lines}");
    };
    one("i = T.axis.spatail(6, x)\nC[i] = T.float32(0)", "there is no axis of the kind `spatail`");
    one("i = T.axis.spatial(6)\nC[i] = T.float32(0)", "`axis` needs the argument `value`");
    one("i, j = T.axis.remap(\"SS\", [x])\nC[i] = T.float32(j)", "the axes of `T.axis.remap` do not fit together");
    one("i = T.axis.remap(\"S\", [x + 1])\nC[i] = T.float32(0)", "`x + 1` is no loop");
    one("T.where(x)\nC[x] = T.float32(0)", "the condition `x` has the type int32, not bool");
    one("T.reads()\nT.reads()\nC[x] = T.float32(0)", "`T.reads` stands in this block already");
    one("T.reads(C[0:6:2])\nC[x] = T.float32(0)", "a region has no steps");
    one("T.writes(C[x, x])\nC[x] = T.float32(0)", "`C` has 1 axes, but 2 ranges are given");
    one("with T.init():\n    C[x] = T.float32(0)\nwith T.init():\n    pass", "the block has an initialisation already");
    one("W = T.match_buffer(C[0:4], (3,))\nW[x] = T.float32(0)", "the shape does not fit the region");
    one("W = T.match_buffer(C[0:4], (4,), \"int8\")\nW[x] = 0", "the elements of `C` are float32");
    one("W = T.match_buffer(C[0:4], (4,))\nW[x, x] = T.float32(0)", "`C` has 1 axes, but 2 indices are given");
    one("W = T.match_buffer(C[0:4], (4,))\nC[x] = T.float32(W.elem_offset)", "`W` is declared without an offset");
    let message = "`T.init` stands outside of a block";
    assert_eq!(errors("        with T.init():\n            C[x] = T.float32(0)"), [message]);
    for (line, word) in [
        ("T.reads(C[x])", "T.reads"),
        ("T.where(x > 2)", "T.where"),
        ("T.block_attr({})", "T.block_attr"),
        ("i = T.axis.spatial(6, x)\n        C[i] = T.float32(0)", "T.axis.spatial"),
    ] {
        assert_eq!(errors(&format!("        {line}")), [format!("`{word}` stands outside of a block")], "{line}");
    }
    for (head, message) in [
        ("T.block([6], \"C\") as i", "`i` has 0 statements `T.bind`"),
        ("T.block([6])", "the head has 1 axes and 0 names"),
        ("T.block(\"C\") as i", "a block binds no names here"),
        ("T.block(6)", "the name of a block is a string"),
    ] {
        assert_eq!(errors(&format!("        with {head}:\n            C[x] = T.float32(0)")), [message], "{head}");
    }
}
