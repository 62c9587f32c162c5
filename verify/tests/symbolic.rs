//! Random maps over symbolic extents: what is proved holds on small extents, what is refuted fails where it says, and little
//! is left open.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use tilewright_ir::{BinaryOp, Bindings, Expr, IndexMap, Var};
use tilewright_verify::{Config, Judge, MapClaim, Verdict};

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    fn number(&mut self, low: i64, high: i64) -> Expr {
        Expr::int(low + i64::try_from(self.below(usize::try_from(high - low + 1).unwrap())).unwrap())
    }
}

fn ceil(extent: &Expr, by: &Expr) -> Expr {
    (extent.clone() + by.clone() - Expr::int(1)).floor_div(by.clone())
}

/// Splits, reverses, rotates and permutes symbolic axes, sometimes with a mistake; and the shape it is said to need.
fn random_map(random: &mut Random, symbols: &[Var]) -> (IndexMap, Vec<Expr>) {
    let vars: Vec<Var> = (0..symbols.len()).map(|axis| Var::index(format!("x{axis}"))).collect();
    let mut digits: Vec<(Expr, Expr)> = Vec::new();
    for (var, symbol) in vars.iter().zip(symbols) {
        let (mut index, mut extent) = (Expr::from(var), Expr::from(symbol));
        match random.below(6) {
            0 => index = extent.clone() - Expr::int(1) - index,
            1 => index = (index + random.number(1, 5)).floor_mod(extent.clone()),
            2 => {
                let by = random.number(1, 3);
                index = index + by.clone();
                extent = extent + by;
            }
            _ => {}
        }
        if random.chance(2) {
            let by = random.number(2, 4);
            let few = random.chance(6);
            let blocks = if few { extent.clone().floor_div(by.clone()) } else { ceil(&extent, &by) };
            let least = Expr::binary(BinaryOp::Min, extent, by.clone());
            digits.push((index.clone().floor_div(by.clone()), blocks));
            digits.push((index.floor_mod(by.clone()), if random.chance(3) { by } else { least }));
        } else {
            digits.push((index, extent));
        }
    }
    for position in (1..digits.len()).rev() {
        digits.swap(position, random.below(position + 1));
    }
    let (outputs, shape) = digits.into_iter().unzip();
    let domain = symbols.iter().map(Expr::from).collect();
    (IndexMap::new(vars, domain, outputs, vec![]).unwrap(), shape)
}

/// Bounds, injective and tight under some values of the symbols.
fn truth(map: &IndexMap, shape: &[Expr], symbols: &Bindings) -> [bool; 3] {
    let values = |exprs: &[Expr]| -> Vec<i128> { exprs.iter().map(|expr| expr.eval_index(symbols).unwrap()).collect() };
    let (domain, shape) = (values(map.domain()), values(shape));
    let points = domain.iter().fold(vec![Vec::new()], |found: Vec<Vec<i128>>, &extent| {
        found.into_iter().flat_map(|point| (0..extent).map(move |at| [point.clone(), vec![at]].concat())).collect()
    });
    let (mut bounds, mut injective, mut seen) = (true, true, HashSet::new());
    let mut reached = vec![false; shape.len()];
    for point in points {
        let image = map.eval(&point, symbols).unwrap();
        bounds &= image.iter().zip(&shape).all(|(at, extent)| (0..*extent).contains(at));
        for (reached, (at, extent)) in reached.iter_mut().zip(image.iter().zip(&shape)) {
            *reached |= at + 1 == *extent;
        }
        injective &= seen.insert(image);
    }
    [bounds, injective, reached.iter().all(|reached| *reached)]
}

#[test]
fn verdicts_on_symbolic_maps_are_right_and_few_are_unknown() {
    let budget = Config { timeout: Duration::from_millis(500), rlimit: 500_000, ..Config::default() };
    let judge = Judge::new(budget, tilewright_search::strategies()).unwrap();
    let mut count: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for seed in 0..120 {
        let mut random = Random(seed);
        let symbols: Vec<Var> = ["n", "m"].map(Var::index)[..=random.below(2)].to_vec();
        let (map, shape) = random_map(&mut random, &symbols);
        let reports = judge.check_map(MapClaim::new(&map, &shape));
        for (position, id) in ["bounds", "injective", "tight"].into_iter().enumerate() {
            let report = reports.iter().find(|report| report.obligation.id() == id).unwrap();
            let text = format!("{id} of {map} into {shape:?}: {} [{}]", report.verdict, report.method);
            *count.entry((id, report.verdict.word())).or_default() += 1;
            match &report.verdict {
                Verdict::Proved(_) => {
                    for size in 0..64 {
                        let extents = [size % 8 + 1, size / 8 + 1];
                        let symbols = symbols.iter().cloned().zip(extents).collect();
                        assert!(truth(&map, &shape, &symbols)[position], "{text}, but not at {extents:?}");
                    }
                }
                Verdict::Refuted(found) => {
                    let value = |symbol: &Var| found.shape.iter().find(|(name, _)| name == symbol.name()).unwrap().1;
                    let at: Bindings = symbols.iter().map(|symbol| (symbol.clone(), value(symbol))).collect();
                    assert!(!truth(&map, &shape, &at)[position], "{text}, but it holds there");
                    for axis in 0..symbols.len() {
                        let mut smaller = at.clone();
                        smaller.insert(symbols[axis].clone(), at[&symbols[axis]] - 1);
                        let least = at[&symbols[axis]] == 1 || truth(&map, &shape, &smaller)[position];
                        assert!(least, "{text}, but it fails at {smaller:?} too");
                    }
                }
                _ => eprintln!("{text}"),
            }
        }
    }
    eprintln!("{count:?}");
    let open: usize = count.iter().filter(|((_, word), _)| *word == "unknown").map(|(_, count)| count).sum();
    assert!(open <= 18, "{open} of 360 are open");
}
