//! Tests of the rules for terms: random terms have the values that the operators give, and Z3 proves the rules for floats.

use proptest::prelude::*;
use tilewright_ir::ScalarType::{BFloat16, Bool, Float16, Float32, Float64, Int8, Int32, Int64, UInt8, UInt64};
use tilewright_ir::scalar::{cast, round_float, wrap_int};
use tilewright_ir::{BinaryOp, DataType, Expr, MathFn, PrimFunc, Scalar, ScalarError, ScalarType, StmtKind, UnaryOp};
use tilewright_kernel::solver::Budget;
use tilewright_kernel::solver::text::{TextAnswer, answer};

use super::code::{Code, operation};
use super::machine::Machine;
use super::terms::{Id, Node, Terms};

const TYPES: [ScalarType; 8] = [Bool, Int8, UInt8, Int32, Int64, UInt64, Float16, Float32];

/// Inputs of each type.
const N_INPUTS: usize = 2;

/// A term, and its value under each assignment of the inputs as the operators give it.
#[derive(Clone, Debug)]
struct Made {
    id: Id,
    ty: ScalarType,
    values: Vec<Scalar>,
}

/// A value at which rules are likely to be wrong.
fn special(ty: ScalarType, choice: u8) -> Scalar {
    if let Some((least, greatest)) = ty.integer_range() {
        let values = [least, greatest, 0, 1, -1, 2, 7, i128::from(choice)];
        return Scalar::Int(wrap_int(ty, values[usize::from(choice) % values.len()]));
    }
    // The least subnormal numbers and the greatest numbers of float16 and float32.
    let values =
        [f64::NAN, -0.0, 0.0, f64::INFINITY, -f64::INFINITY, 1.0, -1.0, 0.1, 5.97e-8, 65504.0, 1e-45, f32::MAX.into()];
    Scalar::Float(round_float(ty, values[usize::from(choice) % values.len()]))
}

/// One more term from those that there are, chosen by four bytes; `None` if the bytes choose nothing, or the term might trap.
fn step(terms: &mut Terms, pool: &[Made], [kind, which, a, b]: [u8; 4]) -> Option<Made> {
    let pick = |from: &[&Made], byte: u8| from.get(usize::from(byte) % from.len().max(1)).copied().cloned();
    let of_type = |ty: ScalarType| pool.iter().filter(|made| made.ty == ty).collect::<Vec<_>>();
    let x = pick(&pool.iter().collect::<Vec<_>>(), a)?;
    let (y, cond) = (pick(&of_type(x.ty), b)?, pick(&of_type(Bool), which)?);
    let which = usize::from(which);
    let number = x.values.len();
    let each = |f: &dyn Fn(usize) -> Result<Scalar, ScalarError>| (0..number).map(f).collect::<Result<Vec<_>, _>>();
    let (id, ty, values) = match kind % 8 {
        0 => (terms.constant(x.ty, special(x.ty, b)), x.ty, each(&|_| Ok(special(x.ty, b)))),
        1..=3 => {
            let op = BinaryOp::ALL[which % BinaryOp::ALL.len()];
            let ty = op.result_type(DataType::scalar(x.ty), DataType::scalar(y.ty))?.scalar;
            (terms.binary(op, x.ty, x.id, y.id), ty, each(&|at| op.eval(x.ty, x.values[at], y.values[at])))
        }
        4 => {
            let op = [UnaryOp::Neg, UnaryOp::Not, UnaryOp::BitNot][which % 3];
            op.result_type(DataType::scalar(x.ty))?;
            (terms.unary(op, x.ty, x.id), x.ty, each(&|at| op.eval(x.ty, x.values[at])))
        }
        5 => {
            let to = TYPES[which % TYPES.len()];
            (terms.cast(x.ty, to, x.id), to, each(&|at| Ok(cast(x.ty, to, x.values[at]))))
        }
        6 => {
            let function = [MathFn::Abs, MathFn::Sqrt, MathFn::Floor, MathFn::IsNan][which % 4];
            let ty = function.result_type(&[DataType::scalar(x.ty)])?.scalar;
            (terms.call(function, x.ty, vec![x.id]), ty, each(&|at| function.eval(x.ty, &[x.values[at]])))
        }
        _ => {
            let chosen = |at: usize| if cond.values[at].as_int() == Some(0) { y.values[at] } else { x.values[at] };
            let under = terms.under(x.id, cond.id);
            (terms.choose(cond.id, under, y.id), x.ty, each(&|at| Ok(chosen(at))))
        }
    };
    let id = id.ok()?;
    Some(Made { id, ty, values: values.expect("what may trap is no term") })
}

/// The value of each term, by its node alone. A term is made of terms with smaller numbers.
fn values(terms: &Terms, inputs: &[Scalar]) -> Vec<Scalar> {
    let mut found: Vec<Scalar> = Vec::new();
    for id in 0..terms.len() {
        let of = |id: &Id| found[*id as usize];
        let value = match terms.node(Id::try_from(id).unwrap()) {
            Node::Int(_, value) => Scalar::Int(*value),
            Node::Float(_, bits) => Scalar::Float(f64::from_bits(*bits)),
            Node::Input(_, number) => inputs[usize::try_from(*number).unwrap()],
            Node::Undefined => unreachable!("nothing is read here"),
            Node::Sum(ty, poly) => poly.terms().fold(Scalar::Int(0), |sum, (factors, by)| {
                let times = |product, factor| BinaryOp::Mul.eval(*ty, product, of(factor)).unwrap();
                let product = factors.iter().fold(Scalar::Int(wrap_int(*ty, by)), times);
                BinaryOp::Add.eval(*ty, sum, product).unwrap()
            }),
            Node::Binary(op, ty, a, b) => op.eval(*ty, of(a), of(b)).unwrap(),
            Node::Unary(op, ty, a) => op.eval(*ty, of(a)).unwrap(),
            Node::Call(function, ty, args) => function.eval(*ty, &args.iter().map(of).collect::<Vec<_>>()).unwrap(),
            Node::Cast(from, to, a) => cast(*from, *to, of(a)),
            Node::Choose(cond, a, b) => of(if of(cond).as_int() == Some(0) { b } else { a }),
        };
        found.push(value);
    }
    found
}

/// The inputs, with their values under some assignments.
fn inputs(terms: &mut Terms, assignments: &[Vec<u8>]) -> Vec<Made> {
    let types = TYPES.iter().flat_map(|ty| [*ty; N_INPUTS]);
    let made = types.enumerate().map(|(place, ty)| {
        let id = terms.add(Node::Input(0, place as u64)).unwrap();
        Made { id, ty, values: assignments.iter().map(|bytes| special(ty, bytes[place])).collect() }
    });
    made.collect()
}

/// The first assignment under which a term has another value than it should have.
fn wrong(terms: &Terms, pool: &[Made]) -> Option<(usize, Made)> {
    let n_inputs = TYPES.len() * N_INPUTS;
    (0..pool[0].values.len()).find_map(|at| {
        let given: Vec<Scalar> = pool[..n_inputs].iter().map(|made| made.values[at]).collect();
        let found = values(terms, &given);
        let wrong = pool.iter().find(|made| !found[made.id as usize].same(made.values[at]));
        wrong.map(|made| (at, made.clone()))
    })
}

/// Some assignments, each of a byte for each input, and the bytes by which terms are chosen.
type Choices = (Vec<Vec<u8>>, Vec<[u8; 4]>);

fn choices() -> impl Strategy<Value = Choices> {
    let assignment = prop::collection::vec(any::<u8>(), TYPES.len() * N_INPUTS);
    (prop::collection::vec(assignment, 12), prop::collection::vec(any::<[u8; 4]>(), 1..120))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_term_has_the_value_of_what_it_was_made_from((assignments, steps) in choices()) {
        let mut terms = Terms::default();
        let mut pool = inputs(&mut terms, &assignments);
        for bytes in steps {
            pool.extend(step(&mut terms, &pool, bytes));
        }
        prop_assert!(wrong(&terms, &pool).is_none(), "{:?} in {:?}", wrong(&terms, &pool), terms);
    }
}

#[test]
fn operations_on_indices_are_those_of_the_language() {
    for ty in [Bool, Int8, UInt8, Int32, Int64, UInt64] {
        let (least, greatest) = ty.integer_range().unwrap();
        let values = [least, least + 1, -7, -1, 0, 1, 2, 3, 5, 7, greatest / 2 + 1, greatest - 1, greatest];
        let values = values.map(|value| wrap_int(ty, value));
        for (op, a, b) in BinaryOp::ALL.iter().flat_map(|op| values.iter().flat_map(|a| values.map(|b| (*op, *a, b)))) {
            let expected = op.eval(ty, Scalar::Int(a), Scalar::Int(b)).ok().and_then(Scalar::as_int);
            assert_eq!(operation(op, ty, a, b).ok(), expected, "{a} {op:?} {b} of {ty}");
        }
    }
}

#[test]
fn a_wrong_term_is_noticed() {
    let mut terms = Terms::default();
    let assignments: Vec<Vec<u8>> = (0..12).map(|shift| (0..16).map(|place| place * 5 + shift).collect()).collect();
    let pool = inputs(&mut terms, &assignments);
    let x = pool.iter().find(|made| made.ty == Float32).unwrap().clone();
    assert!(wrong(&terms, &pool).is_none());
    let zero = Scalar::Float(0.0);
    let sum = x.values.iter().map(|value| BinaryOp::Add.eval(Float32, *value, zero).unwrap()).collect();
    let wrong_sum = Made { values: sum, ..x };
    assert!(wrong(&terms, &[pool.as_slice(), &[wrong_sum]].concat()).is_some(), "-0.0 + 0.0 is 0.0");
}

/// Rules by which floats are one term. Z3 shows for all floats that both sides are the same number, or both NaN.
const SAME: [(&str, &str); 11] = [
    ("x + y", "y + x"),
    ("x * y", "y * x"),
    ("-(-x)", "x"),
    ("x - y", "x + -y"),
    ("x - y", "-y + x"),
    ("T.Select(x > y, x, y)", "T.Select(y < x, x, y)"),
    ("T.Select(x >= y, x, y)", "T.Select(y <= x, x, y)"),
    ("T.Select(x == y, x, y)", "T.Select(y == x, x, y)"),
    ("T.Select(x != y, x, y)", "T.Select(x == y, y, x)"),
    ("T.Select(not x < y, x, y)", "T.Select(x < y, y, x)"),
    ("T.Select(x < y and x < 1, x, y)", "T.Select(x < 1, T.Select(x < y, x, y), y)"),
];

/// More such rules. Of `float64`, Z3's incremental core would take minutes to show them, and its tactics take a second, to which
/// [`answer`] gets when the core has used up [`FEW`] of its resources.
const SAME_TIMES_ONE: [(&str, &str); 2] = [("x * 1", "x"), ("1 * x", "x")];

/// Twice the resources of Z3 that its tactics take for these rules.
const FEW: u32 = 3_000_000;

/// Quotients by powers of two, which both Z3's incremental core and its tactics take long to show: tried with numbers.
const SAME_QUOTIENTS: [(&str, &str); 3] =
    [("x / 2", "x * (1 / 2)"), ("x / -8", "x * (1 / -8)"), ("x / (1 / 4)", "x * 4")];

/// What looks like a rule for floats, and is none: Z3 finds floats for which the sides differ.
const DIFFERENT: [(&str, &str); 13] = [
    ("x + 0", "x"),
    ("x - x", "0"),
    ("x * 0", "0"),
    ("x - y", "y - x"),
    ("0 - x", "-x"),
    ("-(x + y)", "-x - y"),
    ("x + y + y", "x + (y + y)"),
    ("T.min(x, y)", "T.min(y, x)"),
    ("T.max(x, y)", "T.max(y, x)"),
    ("T.Select(not x < y, x, y)", "T.Select(y <= x, x, y)"),
    ("T.Select(x == x, x, y)", "x"),
    ("T.Select(x == y, x, y)", "y"),
    ("x / 3", "x * (1 / 3)"),
];

/// Runs a program over `A` and `B`, of four elements: the program, and the terms that `B` holds in the end.
fn ran(ty: ScalarType, body: &str) -> (PrimFunc, Terms, Vec<Id>) {
    let head = "from tvm.script import tir as T\n\n@T.prim_func\ndef main(a: T.handle, b: T.handle):\n";
    let buffer = |name: &str| format!("    {} = T.match_buffer({name}, (4,), \"{ty}\")\n", name.to_uppercase());
    let lines: Vec<String> = body.lines().map(|line| format!("    {line}\n")).collect();
    let text = [head, &buffer("a"), &buffer("b"), &lines.concat()].concat();
    let func = tilewright_script::read_module(&text).unwrap().funcs.remove(0);
    let mut terms = Terms::default();
    let code = Code::of(&func).unwrap();
    let given = [vec![0, 1, 2, 3], vec![0, 1, 2, 3]];
    let mut machine = Machine::new(&mut terms, &code, &given, 0).unwrap();
    machine.run(&code.body).unwrap();
    let found = (0..4).map(|place| machine.held(1, place).unwrap()).collect();
    (func, terms, found)
}

#[test]
fn all_lanes_of_an_index_are_read_before_one_is_written() {
    let body = "t = T.alloc_buffer((4,), \"int32\")\nfor i in range(4):\n    t[i] = 3 - i\n\
                t[t[T.Ramp(0, 1, 4)]] = T.Ramp(5, 2, 4)\nfor i in range(4):\n    B[i] = t[i]";
    let (_, terms, found) = ran(Int32, body);
    assert_eq!(found.iter().map(|id| terms.as_int(*id)).collect::<Vec<_>>(), [11, 9, 7, 5].map(Some));
}

/// Two expressions over `x` and `y`, of this type, as they are read and as terms.
fn sides(ty: ScalarType, sides: [&str; 2]) -> ([Expr; 2], [Id; 2]) {
    let constant = |digit: char| if digit.is_ascii_digit() { format!("T.{ty}({digit})") } else { digit.into() };
    let [a, b] = sides.map(|side| side.chars().map(constant).collect::<String>());
    let (func, _, found) = ran(ty, &format!("x: T.{ty} = A[0]\ny: T.{ty} = A[1]\nB[0] = {a}\nB[1] = {b}"));
    let mut exprs = Vec::new();
    func.body.walk(&mut |stmt| {
        if let StmtKind::Store { value, .. } = &stmt.kind {
            exprs.push(value.clone());
        }
    });
    (exprs.try_into().unwrap(), [found[0], found[1]])
}

/// An expression over two floats in SMT-LIB, where equality is that of the number: NaN is NaN, and 0.0 is not -0.0.
fn smt(expr: &Expr, sort: &str) -> String {
    let of = |expr: &Expr| smt(expr, sort);
    match expr {
        Expr::Var(var) => var.name().to_owned(),
        Expr::Float { value, .. } => format!("((_ to_fp {sort}) RNE {value:?})"),
        Expr::Select(cond, a, b) => format!("(ite {} {} {})", of(cond), of(a), of(b)),
        Expr::Unary(UnaryOp::Neg, a) => format!("(fp.neg {})", of(a)),
        Expr::Unary(UnaryOp::Not, a) => format!("(not {})", of(a)),
        Expr::Binary(op, a, b) => {
            let (a, b) = (of(a), of(b));
            match op {
                BinaryOp::Add => format!("(fp.add RNE {a} {b})"),
                BinaryOp::Sub => format!("(fp.sub RNE {a} {b})"),
                BinaryOp::Mul => format!("(fp.mul RNE {a} {b})"),
                BinaryOp::Div => format!("(fp.div RNE {a} {b})"),
                BinaryOp::Lt => format!("(fp.lt {a} {b})"),
                BinaryOp::Le => format!("(fp.leq {a} {b})"),
                BinaryOp::Gt => format!("(fp.gt {a} {b})"),
                BinaryOp::Ge => format!("(fp.geq {a} {b})"),
                BinaryOp::Eq => format!("(fp.eq {a} {b})"),
                BinaryOp::Ne => format!("(not (fp.eq {a} {b}))"),
                BinaryOp::And => format!("(and {a} {b})"),
                BinaryOp::Min => format!("(ite (or (fp.isNaN {a}) (fp.lt {b} {a})) {b} {a})"),
                BinaryOp::Max => format!("(ite (or (fp.isNaN {a}) (fp.gt {b} {a})) {b} {a})"),
                other => panic!("{other:?}"),
            }
        }
        other => panic!("{other}"),
    }
}

/// Whether Z3 finds floats for which two expressions differ.
fn differ(exprs: &[Expr; 2], ty: ScalarType, rlimit: u32) -> TextAnswer {
    let sort = match ty {
        Float16 => "5 11",
        BFloat16 => "8 8",
        Float32 => "8 24",
        _ => "11 53",
    };
    let [a, b] = [&exprs[0], &exprs[1]].map(|expr| smt(expr, sort));
    let text = format!(
        "(declare-const x (_ FloatingPoint {sort}))\n(declare-const y (_ FloatingPoint {sort}))\n\
         (assert (not (= {a} {b})))\n(check-sat)\n"
    );
    answer(&text, Budget { timeout_ms: 60_000, rlimit, ..Budget::default() }).unwrap()
}

#[test]
fn rules_for_floats_hold_for_all_floats() {
    for ty in [Float16, BFloat16, Float32, Float64] {
        let few = if ty == Float64 { FEW } else { 0 };
        let times_one = SAME_TIMES_ONE.iter().map(|rule| (rule, few));
        for ((a, b), rlimit) in SAME.iter().map(|rule| (rule, 0)).chain(times_one) {
            let (exprs, [one, two]) = sides(ty, [a, b]);
            assert_eq!(one, two, "{ty}: `{a}` and `{b}` are two terms");
            assert_eq!(differ(&exprs, ty, rlimit), TextAnswer::Unsat, "{ty}: `{a}` and `{b}`");
        }
    }
}

#[test]
fn quotients_by_powers_of_two_are_products_for_all_halves() {
    for ty in [Float16, BFloat16, Float32, Float64] {
        for (a, b) in SAME_QUOTIENTS {
            let ([one, two], terms) = sides(ty, [a, b]);
            assert_eq!(terms[0], terms[1], "{ty}: `{a}` and `{b}` are two terms");
            for bits in 0..=u16::MAX {
                // All numbers of float16; the upper halves of all numbers of float32, with some other lower half; and as many of float64.
                let x = match ty {
                    Float16 => half(bits),
                    BFloat16 => f32::from_bits(u32::from(bits) << 16).into(),
                    Float32 => f32::from_bits(u32::from(bits) << 16 | u32::from(bits.wrapping_mul(40503))).into(),
                    _ => f64::from_bits(u64::from(bits) << 48 | u64::from(bits).wrapping_mul(0x9e37_79b9_7f4a)),
                };
                let value = |expr: &Expr| number(expr, ty, x);
                assert!(same_number(value(&one), value(&two)), "{ty}: `{a}` and `{b}` at {x}");
            }
        }
    }
}

/// A number of float16 by its bits.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023) / 1024.0);
    let size = match exponent {
        0 => fraction * 2f64.powi(-14),
        31 if fraction > 0.0 => f64::NAN,
        31 => f64::INFINITY,
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// The value of an expression over one float.
fn number(expr: &Expr, ty: ScalarType, x: f64) -> f64 {
    let value = match expr {
        Expr::Var(_) => x,
        Expr::Float { value, .. } => *value,
        Expr::Unary(UnaryOp::Neg, a) => -number(a, ty, x),
        Expr::Binary(op, a, b) => {
            let [a, b] = [a, b].map(|side| Scalar::Float(number(side, ty, x)));
            match op.eval(ty, a, b).unwrap() {
                Scalar::Float(value) => value,
                Scalar::Int(value) => panic!("{value}"),
            }
        }
        other => panic!("{other}"),
    };
    round_float(ty, value)
}

/// Whether two floats are the same: NaN is NaN, and 0.0 is not -0.0.
fn same_number(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

#[test]
fn what_is_no_rule_for_floats_differs_for_some_floats() {
    for (a, b) in DIFFERENT {
        let (exprs, [one, two]) = sides(Float16, [a, b]);
        assert_ne!(one, two, "`{a}` and `{b}` are one term");
        assert_eq!(differ(&exprs, Float16, 0), TextAnswer::Sat, "`{a}` and `{b}`");
    }
}
