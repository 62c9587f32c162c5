//! The judge against brute force on random maps of every operator: divisions by what is negative or 0, shifts, casts,
//! conditions, empty and single axes, right and wrong claims of all kinds. The seeds are fixed; `ADVERSARY_CASES` says how
//! many times as many maps are tried.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use tilewright_ir::{
    BinaryOp, Bindings, DataType, Expr, IndexMap, InverseClaim, MathFn, ScalarType, SharedExpr, UnaryOp, Var,
};
use tilewright_verify::{Config, Judge, MapClaim, Report, Verdict};

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((bits >> 33) % bound.max(1) as u64).unwrap()
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    fn chance(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}

fn int(value: i128) -> Expr {
    Expr::int(value.try_into().unwrap())
}

fn constant(random: &mut Random) -> Expr {
    int(random.pick(&[0, 1, 1, 2, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 64, -1, -2, -3, -8, 1000, 46_341, 2_147_483_647]))
}

/// A condition.
fn condition(random: &mut Random, leaves: &[Expr], depth: usize) -> Expr {
    match random.below(8) {
        0 => Expr::unary(UnaryOp::Not, condition(random, leaves, depth / 2)),
        1 | 2 if depth > 0 => {
            let op = random.pick(&[BinaryOp::And, BinaryOp::Or]);
            Expr::binary(op, condition(random, leaves, depth / 2), condition(random, leaves, depth / 2))
        }
        _ => {
            let compare = [BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge];
            let op = random.pick(&compare);
            Expr::binary(op, expression(random, leaves, depth / 2), expression(random, leaves, depth / 2))
        }
    }
}

/// An integer expression over some leaves.
fn expression(random: &mut Random, leaves: &[Expr], depth: usize) -> Expr {
    if depth == 0 || random.chance(6) {
        return if leaves.is_empty() || random.chance(4) { constant(random) } else { random.pick(leaves) };
    }
    let boxed = |random: &mut Random| SharedExpr::new(expression(random, leaves, depth - 1));
    let common = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::FloorDiv, BinaryOp::FloorMod];
    let rare = [
        BinaryOp::TruncDiv,
        BinaryOp::TruncMod,
        BinaryOp::Min,
        BinaryOp::Max,
        BinaryOp::BitAnd,
        BinaryOp::BitOr,
        BinaryOp::BitXor,
        BinaryOp::Shl,
        BinaryOp::Shr,
    ];
    match random.below(20) {
        0 => Expr::unary(UnaryOp::Neg, expression(random, leaves, depth - 1)),
        1 => Expr::unary(UnaryOp::BitNot, expression(random, leaves, depth - 1)),
        2 => Expr::Call(MathFn::Abs, [expression(random, leaves, depth - 1)].into()),
        3 => {
            let narrow = Expr::Cast(DataType::scalar(ScalarType::Int8), boxed(random));
            Expr::Cast(DataType::INT32, SharedExpr::new(narrow))
        }
        4 => Expr::Select(SharedExpr::new(condition(random, leaves, depth - 1)), boxed(random), boxed(random)),
        5 | 6 => Expr::IfThenElse(SharedExpr::new(condition(random, leaves, depth - 1)), boxed(random), boxed(random)),
        kind => {
            let op = if kind < 14 { random.pick(&common) } else { random.pick(&rare) };
            let left = expression(random, leaves, depth - 1);
            let right = if random.chance(2) { constant(random) } else { expression(random, leaves, depth - 1) };
            Expr::binary(op, left, right)
        }
    }
}

fn points(extents: &[i128]) -> Vec<Vec<i128>> {
    if extents.contains(&0) {
        return Vec::new();
    }
    extents.iter().fold(vec![Vec::new()], |found, &extent| {
        let longer = |point: Vec<i128>| (0..extent).map(move |at| [point.clone(), vec![at]].concat());
        found.into_iter().flat_map(longer).collect()
    })
}

/// Whether everything that is evaluated has a value that fits its type.
fn fits(expr: &Expr, bindings: &Bindings) -> bool {
    let children: Vec<&Expr> = match expr {
        Expr::IfThenElse(c, a, b) => match c.eval_index(bindings) {
            Ok(0) => vec![c, b],
            Ok(_) => vec![c, a],
            Err(_) => return false,
        },
        _ => expr.children().collect(),
    };
    let Ok(value) = expr.eval_index(bindings) else { return false };
    let range = expr.dtype().scalar.integer_range();
    range.is_none_or(|(low, high)| (low..=high).contains(&value)) && children.iter().all(|child| fits(child, bindings))
}

/// Everything that may be claimed of a map.
struct Claimed {
    map: IndexMap,
    shape: Vec<Expr>,
    padded: Vec<usize>,
    inverse: Option<InverseClaim>,
    meaning: IndexMap,
}

impl Claimed {
    fn claim(&self) -> MapClaim<'_> {
        let claim = MapClaim::new(&self.map, &self.shape).padded(&self.padded).meaning(&self.meaning);
        self.inverse.as_ref().map_or(claim, |inverse| claim.inverse(inverse))
    }
}

/// What brute force says under some values of the symbols: each obligation, and the first index out of bounds.
fn truths(claimed: &Claimed, symbols: &Bindings) -> (HashMap<&'static str, bool>, Option<Vec<i128>>) {
    let values = |exprs: &[Expr]| exprs.iter().map(|expr| expr.eval_index(symbols).unwrap()).collect::<Vec<_>>();
    let (domain, shape) = (values(claimed.map.domain()), values(&claimed.shape));
    let inside = |index: &[i128], shape: &[i128]| index.iter().zip(shape).all(|(at, extent)| (0..*extent).contains(at));
    let (mut images, mut outside) = (HashSet::new(), None);
    let [mut bounds, mut injective, mut overflow, mut specification, mut inverse, mut padding] = [true; 6];
    let mut reached = vec![false; shape.len()];
    let at = |vars: &[Var], index: &[i128]| -> Bindings {
        symbols.clone().into_iter().chain(vars.iter().cloned().zip(index.iter().copied())).collect()
    };
    for point in points(&domain) {
        let image = claimed.map.eval(&point, symbols).ok();
        overflow &= claimed.map.outputs().iter().all(|output| fits(output, &at(claimed.map.vars(), &point)));
        specification &= image.is_some() && image == claimed.meaning.eval(&point, symbols).ok();
        let good = image.as_ref().is_some_and(|image| inside(image, &shape));
        bounds &= good;
        if !good && outside.is_none() {
            outside = Some(point.clone());
        }
        let Some(image) = image else {
            [injective, inverse, padding] = [false; 3];
            continue;
        };
        for (reached, (at, extent)) in reached.iter_mut().zip(image.iter().zip(&shape)) {
            *reached |= at + 1 == *extent;
        }
        if let Some(claim) = &claimed.inverse {
            let bound = at(&claim.vars, &image);
            let back: Option<Vec<_>> = claim.outputs.iter().map(|output| output.eval_index(&bound).ok()).collect();
            inverse &= back.as_ref() == Some(&point);
            padding &= claim.padding.eval_index(&bound) == Ok(0);
        }
        injective &= images.insert(image);
    }
    if let Some(claim) = &claimed.inverse {
        for place in points(&shape) {
            let bound = at(&claim.vars, &place);
            if claim.padding.eval_index(&bound).is_ok_and(|value| value != 0) {
                continue;
            }
            let back: Option<Vec<_>> = claim.outputs.iter().map(|output| output.eval_index(&bound).ok()).collect();
            let again =
                back.filter(|back| inside(back, &domain)).and_then(|back| claimed.map.eval(&back, symbols).ok());
            inverse &= again.as_ref() == Some(&place);
            padding &= images.contains(&place);
        }
    }
    let tight = (0..shape.len()).all(|axis| claimed.padded.contains(&axis) || reached[axis]);
    let all = [
        ("bounds", bounds),
        ("injective", injective),
        ("tight", tight),
        ("overflow", overflow),
        ("specification", specification),
        ("inverse", inverse),
        ("padding", padding),
    ];
    (all.into(), outside)
}

/// One constant of an expression, or one operator, made another.
fn mutated(random: &mut Random, expr: &Expr, chance: usize) -> Expr {
    let mut inner = |expr: &Expr| SharedExpr::new(mutated(random, expr, chance));
    let again = match expr {
        Expr::Binary(op, a, b) => Expr::Binary(*op, inner(a), inner(b)),
        Expr::Unary(op, a) => Expr::Unary(*op, inner(a)),
        Expr::Select(c, a, b) => Expr::Select(inner(c), inner(a), inner(b)),
        Expr::IfThenElse(c, a, b) => Expr::IfThenElse(inner(c), inner(a), inner(b)),
        other => other.clone(),
    };
    match again {
        Expr::Int { value, ty: ScalarType::Int32 } if random.chance(chance) => {
            Expr::Int { value: value + random.pick(&[-1, 1]), ty: ScalarType::Int32 }
        }
        Expr::Binary(BinaryOp::FloorDiv | BinaryOp::TruncDiv, a, b) if random.chance(2 * chance) => {
            Expr::Binary(BinaryOp::FloorMod, a, b)
        }
        Expr::Binary(BinaryOp::Lt, a, b) if random.chance(chance) => Expr::Binary(BinaryOp::Le, a, b),
        other => other,
    }
}

/// The inverse of a small map as a table.
fn table(map: &IndexMap, domain: &[i128], shape: &[i128]) -> InverseClaim {
    let vars: Vec<Var> = (0..shape.len()).map(|axis| Var::index(format!("p{axis}"))).collect();
    let mut outputs = vec![int(0); domain.len()];
    let mut padding = Expr::bool(true);
    for point in points(domain) {
        let Ok(image) = map.eval(&point, &Bindings::new()) else { continue };
        if image.iter().any(|at| i32::try_from(*at).is_err()) {
            continue;
        }
        let here = vars.iter().zip(&image).fold(Expr::bool(true), |all, (var, at)| {
            Expr::binary(BinaryOp::And, all, Expr::binary(BinaryOp::Eq, Expr::from(var), int(*at)))
        });
        for (output, at) in outputs.iter_mut().zip(&point) {
            let other = std::mem::replace(output, int(0));
            *output =
                Expr::IfThenElse(SharedExpr::new(here.clone()), SharedExpr::new(int(*at)), SharedExpr::new(other));
        }
        padding = Expr::binary(BinaryOp::And, padding, Expr::unary(UnaryOp::Not, here));
    }
    InverseClaim { vars, outputs, padding }
}

/// A random map over some extents.
fn random_map(random: &mut Random, domain: &[Expr], depth: usize) -> IndexMap {
    let vars: Vec<Var> = (0..domain.len()).map(|axis| Var::index(format!("x{axis}"))).collect();
    let mut leaves: Vec<Expr> = vars.iter().map(Expr::from).collect();
    leaves.extend(domain.iter().filter(|extent| extent.as_const_int().is_none()).cloned());
    let count = random.below(4);
    let mut outputs: Vec<Expr> = (0..count)
        .map(|_| {
            if random.chance(3) && !leaves.is_empty() {
                random.pick(&leaves)
            } else {
                expression(random, &leaves, depth)
            }
        })
        .collect();
    if random.chance(3) {
        outputs.extend(vars.iter().map(Expr::from));
    }
    IndexMap::new(vars, domain.to_vec(), outputs, Vec::new()).unwrap()
}

fn meaning(random: &mut Random, map: &IndexMap) -> IndexMap {
    // The same variables in another order, or other ones.
    let mut vars = map.vars().to_vec();
    match random.below(3) {
        0 => vars.reverse(),
        1 => vars = vars.iter().map(|var| Var::index(var.name())).collect(),
        _ => {}
    }
    let index: Vec<Expr> = vars.iter().map(Expr::from).collect();
    let outputs = map.apply(&index).iter().map(|output| mutated(random, output, 12)).collect();
    IndexMap::new(vars, map.domain().to_vec(), outputs, Vec::new()).unwrap()
}

/// A map of constant extents with a shape that fits more or less.
fn constant_claim(random: &mut Random, domain: &[i128], depth: usize) -> Claimed {
    let extents: Vec<Expr> = domain.iter().copied().map(int).collect();
    let map = random_map(random, &extents, depth);
    let mut shape = vec![1; map.outputs().len()];
    for point in points(domain) {
        let image = map.eval(&point, &Bindings::new()).unwrap_or_default();
        for (extent, at) in shape.iter_mut().zip(image) {
            *extent = (*extent).max(at + 1);
        }
    }
    for extent in &mut shape {
        *extent = (*extent + random.pick(&[0, 0, 0, 0, 1, -1])).min(1 << 40);
    }
    let places = shape.iter().try_fold(1i128, |all, extent| all.checked_mul(*extent)).unwrap_or(i128::MAX);
    let count: i128 = domain.iter().product();
    let small = places <= 300 && count <= 12;
    let mut inverse = small.then(|| table(&map, domain, &shape));
    if let Some(inverse) = inverse.as_mut().filter(|_| random.chance(2)) {
        inverse.outputs = inverse.outputs.iter().map(|output| mutated(random, output, 20)).collect();
        inverse.padding = mutated(random, &inverse.padding, 20);
    }
    let padded = (0..shape.len()).filter(|_| random.chance(5)).collect();
    let meaning = meaning(random, &map);
    Claimed {
        map,
        shape: shape.into_iter().map(|extent| Expr::Int { value: extent, ty: ScalarType::Int64 }).collect(),
        padded,
        inverse,
        meaning,
    }
}

type Counts = BTreeMap<String, usize>;

fn cases(count: u64) -> u64 {
    count * std::env::var("ADVERSARY_CASES").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

fn told(seed: u64, claimed: &Claimed, report: &Report) -> String {
    let list = |exprs: &[Expr]| exprs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    format!(
        "seed {seed}: {} of {} on ({}) into ({}), padded {:?}, inverse {:?}, meaning {}: {} [{}]",
        report.obligation,
        claimed.map,
        list(claimed.map.domain()),
        list(&claimed.shape),
        claimed.padded,
        claimed.inverse.as_ref().map(|inverse| (list(&inverse.outputs), inverse.padding.to_string())),
        claimed.meaning,
        report.verdict,
        report.method
    )
}

fn checked(judge: &Judge, claimed: &Claimed, seed: u64, counts: &mut Counts) -> Vec<Report> {
    let reports = judge.check_map(claimed.claim());
    for report in &reports {
        *counts.entry(format!("{} {}", report.obligation, report.verdict.word())).or_default() += 1;
        let internal = matches!(&report.verdict, Verdict::Unknown(reason) if reason.is_internal());
        assert!(!internal, "{}", told(seed, claimed, report));
    }
    reports
}

fn against_brute_force(judge: &Judge, seed: u64, domain: &[i128], depth: usize, counts: &mut Counts) {
    let claimed = constant_claim(&mut Random(seed), domain, depth);
    let reports = checked(judge, &claimed, seed, counts);
    let (truths, outside) = truths(&claimed, &Bindings::new());
    let empty = domain.contains(&0);
    for report in &reports {
        let truth = truths[report.obligation.id()];
        match &report.verdict {
            Verdict::Proved(_) => assert!(truth && !empty, "{}", told(seed, &claimed, report)),
            Verdict::Refuted(found) => {
                assert!(!truth && !empty, "{}", told(seed, &claimed, report));
                let first = report.obligation.id() != "bounds" || found.indices.first() == outside.as_ref();
                assert!(first, "not the first: {}", told(seed, &claimed, report));
            }
            Verdict::Vacuous(_) => assert!(empty, "{}", told(seed, &claimed, report)),
            Verdict::Unknown(_) | Verdict::Skipped(_) => {}
        }
    }
}

#[test]
fn random_small_maps_are_judged_as_by_brute_force() {
    let (judge, mut counts) = (Judge::new(Config::default(), tilewright_search::strategies()).unwrap(), Counts::new());
    for seed in 0..cases(1500) {
        let mut random = Random(seed ^ 0x5eed);
        let rank = random.below(4);
        let domain: Vec<i128> = (0..rank).map(|_| random.pick(&[1, 2, 3, 3, 4, 5, 7, 8, 9])).collect();
        let domain = if random.chance(40) { [domain, vec![0]].concat() } else { domain };
        against_brute_force(&judge, seed, &domain, 1 + random.below(3), &mut counts);
    }
    eprintln!("{counts:?}");
}

#[test]
fn random_maps_beyond_a_quick_enumeration_are_judged_as_by_brute_force() {
    let (judge, mut counts) = (Judge::new(Config::default(), tilewright_search::strategies()).unwrap(), Counts::new());
    for seed in 0..cases(60) {
        let mut random = Random(seed ^ 0xb16);
        let domain =
            random.pick(&[vec![5001], vec![64, 128], vec![67, 73], vec![8192], vec![16, 32, 16], vec![2, 2503]]);
        against_brute_force(&judge, seed + 1_000_000, &domain, 1 + random.below(2), &mut counts);
    }
    eprintln!("{counts:?}");
}

#[test]
fn what_is_proved_of_random_symbolic_maps_holds_for_small_extents() {
    let budget = Config { timeout: Duration::from_millis(300), rlimit: 200_000, ..Config::default() };
    let (judge, mut counts) = (Judge::new(budget, tilewright_search::strategies()).unwrap(), Counts::new());
    for seed in 0..cases(60) {
        let mut random = Random(seed ^ 0xabc);
        let symbols: Vec<Var> = ["n", "m"].map(Var::index)[..=random.below(2)].to_vec();
        let domain: Vec<Expr> = symbols.iter().map(Expr::from).collect();
        let depth = 1 + random.below(2);
        let map = random_map(&mut random, &domain, depth);
        let shape: Vec<Expr> = map
            .outputs()
            .iter()
            .map(|_| match random.below(4) {
                0 => random.pick(&domain),
                1 => domain.iter().cloned().reduce(|a, b| a * b).unwrap(),
                2 => random.pick(&domain) + int(random.pick(&[-1, 1, 2])),
                _ => random.pick(&[int(1), int(2), int(8)]),
            })
            .collect();
        let padded = (0..shape.len()).filter(|_| random.chance(2)).collect();
        let meaning = meaning(&mut random, &map);
        let claimed = Claimed { map, shape, padded, inverse: None, meaning };
        let reports = checked(&judge, &claimed, seed, &mut counts);
        let bind = |values: &[i128]| -> Bindings { symbols.iter().cloned().zip(values.iter().copied()).collect() };
        let instances: Vec<Bindings> = points(&vec![7; symbols.len()])
            .iter()
            .map(|values| bind(&values.iter().map(|value| value + 1).collect::<Vec<_>>()))
            .collect();
        for report in &reports {
            match &report.verdict {
                Verdict::Proved(_) => {
                    let wrong = instances.iter().find(|symbols| !truths(&claimed, symbols).0[report.obligation.id()]);
                    assert!(wrong.is_none(), "{wrong:?} {}", told(seed, &claimed, report));
                }
                Verdict::Refuted(found) => {
                    let value =
                        |var: &Var| found.shape.iter().find(|(name, _)| name == var.name()).map_or(1, |at| at.1);
                    let shape: Vec<i128> = symbols.iter().map(value).collect();
                    if shape.iter().product::<i128>() < 3000 {
                        let holds = truths(&claimed, &bind(&shape)).0[report.obligation.id()];
                        assert!(!holds, "{}", told(seed, &claimed, report));
                    }
                }
                Verdict::Unknown(_) | Verdict::Vacuous(_) | Verdict::Skipped(_) => {}
            }
        }
    }
    eprintln!("{counts:?}");
}
