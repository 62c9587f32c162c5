//! The flattened map NHWC -> NCHW4c for all shapes, and broken variants of it.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail, and shows its times")]

use std::time::{Duration, Instant};
use tilewright_verify::kernel::{Consistency, Context, Fact, Failure, Mode};
use tilewright_verify::lemmas::{Chain, Digit, Lemma, Lemmas};
use tilewright_verify::solver::Solver;
use tilewright_verify::term::{Prop, Substitution, Term};

const AXES: [&str; 4] = ["n", "h", "w", "c"];
const SHAPE: [&str; 4] = ["N", "H", "W", "C"];

/// One copy of the indices with what is known about them.
struct Copy {
    index: [Term; 4],
    facts: Vec<Fact>,
}

fn domain(context: &mut Context, copy: &str) -> Copy {
    let index = AXES.map(|axis| Term::sym(format!("{axis}{copy}").as_str()));
    let mut facts = Vec::new();
    for (value, extent) in index.iter().zip(SHAPE) {
        facts.push(context.assume(value.at_least(0), "domain"));
        facts.push(context.assume(value.less(Term::sym(extent)), "domain"));
    }
    Copy { index, facts }
}

/// The digits of NCHW4c, and the facts of the split of the channels.
fn layout(lemmas: &Lemmas, context: &mut Context, copy: &mut Copy) -> Result<Chain, Failure> {
    let [n, h, w, c] = &copy.index;
    let [big_n, big_h, big_w, big_c] = SHAPE.map(Term::sym);
    let using: Vec<&Fact> = copy.facts.iter().collect();
    let ([block, lane], facts) = lemmas.split_axis(context, [c, &big_c], &Term::int(4), &using)?;
    copy.facts.extend(facts);
    Ok(Chain::new([Digit::new(n, big_n), block, Digit::new(h, big_h), Digit::new(w, big_w), lane]))
}

fn refs(facts: &[Fact]) -> Vec<&Fact> {
    facts.iter().collect()
}

fn prove_bounds(solver: &Solver, lemmas: &Lemmas) -> Result<(Fact, Duration), Failure> {
    let mut context = Context::new(solver);
    let mut copy = domain(&mut context, "0");
    let chain = layout(lemmas, &mut context, &mut copy)?;
    let shown = chain.bounds(lemmas, &mut context, &refs(&copy.facts))?;
    assert!(matches!(context.consistent()?, Consistency::Satisfiable(_)));
    let whole = shown.last().cloned().expect("five digits");
    Ok((whole, context.elapsed()))
}

fn prove_injective(solver: &Solver, lemmas: &Lemmas) -> Result<(Fact, Duration), Failure> {
    let mut context = Context::new(solver);
    let (mut left, mut right) = (domain(&mut context, "0"), domain(&mut context, "1"));
    let (a, b) = (layout(lemmas, &mut context, &mut left)?, layout(lemmas, &mut context, &mut right)?);
    let same = context.assume(a.value().equals(b.value()), "two indices share an element");
    let ranges: Vec<&Fact> = left.facts.iter().chain(&right.facts).collect();
    let digits = a.injective(&b, lemmas, &mut context, &same, &ranges)?;
    let [n, block, h, w, lane] = &digits[..] else { panic!("five digits") };
    let values = [("a", &left.index[3]), ("b", &Term::int(4)), ("c", &right.index[3])];
    let c = lemmas.apply(&mut context, Lemma::DigitsDetermine, &values, &[block, lane])?;
    let all = context.join(&[n, h, w, &c])?;
    assert!(matches!(context.consistent()?, Consistency::Satisfiable(_)));
    Ok((all, context.elapsed()))
}

#[test]
fn nchw4c_is_injective_and_in_bounds_for_all_shapes() {
    let solver = Solver::new().unwrap();
    let lemmas = Lemmas::new(&solver);
    for round in ["first", "again"] {
        let start = Instant::now();
        let (bounds, spent) = prove_bounds(&solver, &lemmas).unwrap();
        println!("{round}: bounds {:?}, steps {spent:?}", start.elapsed());
        assert_eq!(
            bounds.prop().to_string(),
            "0 <= (((n0 * ((C + 3) // 4) + c0 // 4) * H + h0) * W + w0) * 4 + c0 % 4 and \
             (((n0 * ((C + 3) // 4) + c0 // 4) * H + h0) * W + w0) * 4 + c0 % 4 < N * ((C + 3) // 4) * H * W * 4"
        );
        let start = Instant::now();
        let (injective, spent) = prove_injective(&solver, &lemmas).unwrap();
        println!("{round}: injective {:?}, steps {spent:?}", start.elapsed());
        assert_eq!(injective.prop().to_string(), "n0 == n1 and h0 == h1 and w0 == w1 and c0 == c1");
    }
}

#[test]
fn floor_extents_for_ceilings_are_not_in_bounds() {
    let solver = Solver::new().unwrap();
    let lemmas = Lemmas::new(&solver);
    let mut context = Context::new(&solver);
    let mut copy = domain(&mut context, "0");
    let mut digits = layout(&lemmas, &mut context, &mut copy).unwrap().digits().to_vec();
    digits[1].extent = Term::sym("C").floor_div(4);
    let broken = Chain::new(digits).bounds(&lemmas, &mut context, &refs(&copy.facts));
    assert!(matches!(broken, Err(Failure::NotShown(_))), "{broken:?}");
}

#[test]
fn swapped_extents_are_neither_injective_nor_in_bounds() {
    let solver = Solver::new().unwrap();
    let lemmas = Lemmas::new(&solver);
    let mut context = Context::new(&solver);
    let (mut left, mut right) = (domain(&mut context, "0"), domain(&mut context, "1"));
    let swapped = |chain: &Chain| {
        let mut digits = chain.digits().to_vec();
        let extent = std::mem::replace(&mut digits[2].extent, Term::sym("W"));
        digits[3].extent = extent;
        Chain::new(digits)
    };
    let a = swapped(&layout(&lemmas, &mut context, &mut left).unwrap());
    let b = swapped(&layout(&lemmas, &mut context, &mut right).unwrap());
    let same = context.assume(a.value().equals(b.value()), "two indices share an element");
    let ranges: Vec<&Fact> = left.facts.iter().chain(&right.facts).collect();
    assert!(a.injective(&b, &lemmas, &mut context, &same, &ranges).is_err());
    assert!(a.bounds(&lemmas, &mut context, &ranges).is_err());
}

#[test]
fn a_wrong_lane_or_a_dropped_digit_does_not_determine_the_channel() {
    let solver = Solver::new().unwrap();
    let lemmas = Lemmas::new(&solver);
    let mut context = Context::new(&solver);
    let (c, d, four) = (Term::sym("c"), Term::sym("d"), Term::int(4));
    let block = context.assume(c.floor_div(4).equals(d.floor_div(4)), "one block");
    let wrong = context.assume(c.floor_mod(3).equals(d.floor_mod(3)), "one lane of three");
    let values = [("a", &c), ("b", &four), ("c", &d)];
    for using in [vec![&block], vec![&block, &wrong]] {
        let shown = lemmas.apply(&mut context, Lemma::DigitsDetermine, &values, &using);
        assert!(matches!(shown, Err(Failure::NotShown(_))), "{shown:?}");
    }
    let refuted = context.derive(c.equals(&d), &[&block, &wrong], Mode::Exact);
    assert!(matches!(refuted, Err(Failure::Refuted(_))), "{refuted:?}");
}

/// An index as a function of `[n, h, w, c]`.
type IndexOf<'i> = &'i dyn Fn([Term; 4]) -> Term;

/// The flat index over constant extents `[N, H, W, C]`; the parameters make the broken twins.
fn flat([n, h, w, c]: [Term; 4], [ext_h, ext_w, ext_k]: [i128; 3], lane: i128) -> Term {
    (((n * ext_k + c.floor_div(4)) * ext_h + h) * ext_w + w) * 4 + c.floor_mod(lane)
}

fn constant_shape(name: &str, index: impl Fn([Term; 4]) -> Term) -> Result<Fact, Failure> {
    let shape: [i128; 4] = [2, 7, 9, 17];
    let mut context = Context::new(&Solver::new().unwrap());
    let [left, right] = ["0", "1"].map(|copy| AXES.map(|axis| Term::sym(format!("{axis}{copy}").as_str())));
    let mut facts = Vec::new();
    for (value, extent) in left.iter().chain(&right).zip(shape.iter().cycle()) {
        facts.push(context.assume(value.at_least(0).and(value.less(*extent)), "domain"));
    }
    facts.push(context.assume(index(left.clone()).equals(index(right.clone())), "same element"));
    let goal = Prop::all(left.iter().zip(&right).map(|(a, b)| a.equals(b)));
    let start = Instant::now();
    let result = context.derive(goal, &refs(&facts), Mode::Exact);
    println!("constant shape, {name}: {:?}", start.elapsed());
    result
}

#[test]
fn with_a_constant_shape_the_map_is_proved_and_broken_twins_are_refuted() {
    constant_shape("right", |index| flat(index, [7, 9, 5], 4)).unwrap();
    let broken: [(&str, IndexOf); 4] = [
        ("floor for ceil", &|index| flat(index, [7, 9, 4], 4)),
        ("swapped extents", &|index| flat(index, [9, 7, 5], 4)),
        ("wrong lane", &|index| flat(index, [7, 9, 5], 3)),
        ("dropped digit", &|[n, _, w, c]| flat([n, Term::int(0), w, c], [7, 9, 5], 4)),
    ];
    for (name, index) in broken {
        let result = constant_shape(name, index);
        let Err(Failure::Refuted(model)) = result else { panic!("{name}: {result:?}") };
        let [left, right] = ["0", "1"].map(|copy| {
            let values = AXES.map(|axis| format!("{axis}{copy}"));
            let value = |name: &String| Term::sym(name.as_str()).eval(&model).unwrap_or(0);
            let substitution = Substitution::new(values.iter().map(|name| (name.as_str(), value(name))));
            substitution.term(&index(values.clone().map(|name| Term::sym(name.as_str())))).as_const().unwrap()
        });
        assert_eq!(left, right, "{name}: the two indices collide");
    }
}
