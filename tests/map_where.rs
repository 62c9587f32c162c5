//! Maps on a part of their box (`map --where`), the parts of a map (`--parts`), and its outer and inner indices (`--inner`).
//!
//! The judge's verdicts on restricted maps are compared with evaluation at every point. Every kind of map has broken twins,
//! which are not proved.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;

use common::tilewright;
use serde_json::{Value, json};
use tilewright_ir::visit::Substitution;
use tilewright_ir::{Bindings, Expr, IndexMap, InverseClaim, Var};
use tilewright_script::{Symbols, read_index_map, read_predicate, read_shape};
use tilewright_verify::{Config, Judge, MapClaim, Obligation, Verdict};

/// The report of `tilewright map` with these options.
fn map(map: &str, shape: &str, more: &[&str]) -> (Option<i32>, Value) {
    let run = tilewright(&[&["map", map, "--shape", shape, "--format", "json"], more].concat());
    (run.code, run.json())
}

/// The verdict on an obligation whose subject contains a text.
fn verdict<'v>(json: &'v Value, obligation: &str, subject: &str) -> &'v str {
    let rows = json["verdicts"].as_array().unwrap();
    let is_it = |row: &&Value| row["obligation"] == obligation && row["subject"].as_str().unwrap().contains(subject);
    rows.iter().find(is_it).unwrap_or_else(|| panic!("no {obligation} in {json}"))["verdict"].as_str().unwrap()
}

/// A claim about a restricted map, in texts.
struct Texts<'t> {
    map: &'t str,
    shape: &'t str,
    predicate: &'t str,
    physical: &'t str,
    inverse: &'t str,
    padding: &'t str,
}

/// A claim that was read.
struct Claim {
    map: IndexMap,
    predicate: Expr,
    physical: Vec<Expr>,
    inverse: InverseClaim,
}

impl Texts<'_> {
    fn read(&self) -> Claim {
        let mut symbols = Symbols::default();
        let shape = read_shape(self.shape, &mut symbols).unwrap();
        let physical = read_shape(self.physical, &mut symbols).unwrap();
        let map = read_index_map(self.map, Some(&shape), &mut symbols).unwrap();
        let renamed = |(vars, condition): (Vec<Var>, Expr), to: &[Var]| {
            Substitution::new(&vars, to.iter().map(Expr::from)).apply(&condition)
        };
        let predicate = renamed(read_predicate(self.predicate, &shape, &mut symbols).unwrap(), map.vars());
        let back = read_index_map(self.inverse, Some(&physical), &mut symbols).unwrap();
        let padding = renamed(read_predicate(self.padding, &physical, &mut symbols).unwrap(), back.vars());
        let inverse = InverseClaim { vars: back.vars().to_vec(), outputs: back.outputs().to_vec(), padding };
        Claim { map, predicate, physical, inverse }
    }
}

impl Claim {
    fn judged(&self, judge: &Judge) -> BTreeMap<Obligation, Verdict> {
        let claim = MapClaim::new(&self.map, &self.physical).inverse(&self.inverse).restricted_to(&self.predicate);
        judge.check_map(claim).into_iter().map(|report| (report.obligation, report.verdict)).collect()
    }

    /// What is true of a claim without symbols, by evaluation at every point. `None`: the predicate holds nowhere.
    fn truth(&self) -> Option<BTreeMap<Obligation, bool>> {
        let numbers = |exprs: &[Expr]| exprs.iter().map(|expr| expr.as_const_int().unwrap()).collect::<Vec<_>>();
        let (domain, physical) = (numbers(self.map.domain()), numbers(&self.physical));
        let value = |expr: &Expr, vars: &[Var], at: &[i128]| {
            expr.eval_index(&vars.iter().cloned().zip(at.iter().copied()).collect::<Bindings>()).unwrap()
        };
        let holds = |at: &[i128]| value(&self.predicate, self.map.vars(), at) != 0;
        let image = |at: &[i128]| self.map.eval(at, &Bindings::new()).unwrap();
        let back =
            |at: &[i128]| self.inverse.outputs.iter().map(|out| value(out, &self.inverse.vars, at)).collect::<Vec<_>>();
        let is_padding = |at: &[i128]| value(&self.inverse.padding, &self.inverse.vars, at) != 0;
        let inside = |at: &[i128], shape: &[i128]| at.iter().zip(shape).all(|(at, extent)| (0..*extent).contains(at));
        let points: Vec<Vec<i128>> = all(&domain).into_iter().filter(|at| holds(at)).collect();
        if points.is_empty() {
            return None;
        }
        let images: Vec<Vec<i128>> = points.iter().map(|at| image(at)).collect();
        let mut distinct = images.clone();
        distinct.sort();
        distinct.dedup();
        let left = points.iter().zip(&images).all(|(at, image)| back(image) == *at);
        let right = all(&physical).iter().filter(|place| !is_padding(place)).all(|place| {
            let back = back(place);
            inside(&back, &domain) && holds(&back) && image(&back) == *place
        });
        let tight = (0..physical.len()).all(|axis| images.iter().any(|image| image[axis] + 1 == physical[axis]));
        let exact = all(&physical).iter().all(|place| is_padding(place) != images.contains(place));
        let exact = exact && images.iter().all(|image| !is_padding(image));
        Some(BTreeMap::from([
            (Obligation::Bounds, images.iter().all(|image| inside(image, &physical))),
            (Obligation::Injective, distinct.len() == points.len()),
            (Obligation::Tight, tight),
            (Obligation::Inverse, left && right),
            (Obligation::Padding, exact),
        ]))
    }
}

/// All points of a box.
fn all(shape: &[i128]) -> Vec<Vec<i128>> {
    shape.iter().fold(vec![Vec::new()], |points, &extent| {
        points.iter().flat_map(|point| (0..extent).map(|at| [point.clone(), vec![at]].concat())).collect()
    })
}

fn judge() -> Judge {
    Judge::new(Config::default(), tilewright_search::strategies()).unwrap()
}

#[test]
fn verdicts_on_restricted_maps_are_those_of_evaluation() {
    let judge = judge();
    let maps = [
        ("lambda i, j: [i * 4 + j]", "5,4", "19", "lambda p: [p // 4, p % 4]"),
        ("lambda i, j: [i * 4 + j]", "5,4", "17", "lambda p: [p // 4, p % 4]"),
        ("lambda i, j: [i * 3 + j]", "5,4", "16", "lambda p: [p // 3, p % 3]"),
        ("lambda i, j: [j, i]", "5,4", "4,5", "lambda a, b: [b, a]"),
        ("lambda i, j: [i // 2, j, i % 2]", "5,4", "3,4,2", "lambda a, b, c: [a * 2 + c, b]"),
        ("lambda i, j: [i % 3, j]", "5,4", "3,4", "lambda a, b: [a, b]"),
        ("lambda i, j: [i + j]", "5,4", "8", "lambda p: [p, 0]"),
    ];
    let predicates = [
        "lambda i, j: i * 4 + j < 17",
        "lambda i, j: i < 3",
        "lambda i, j: j < 3 and i != 2",
        "lambda i, j: j == 0",
        "lambda i, j: (i + j) % 2 == 0",
        "lambda i, j: i > 7",
        "lambda i, j: i * 4 + j >= 0",
        "lambda i, j: i == 4 and j == 3",
    ];
    let paddings = ["False", "PLACE >= 17", "PLACE >= 12", "PLACE % 2 == 1"];
    let (mut tried, mut shown) = (0, 0);
    for (map, shape, physical, inverse) in maps {
        for predicate in predicates {
            for padding in paddings {
                let vars = &inverse["lambda ".len()..inverse.find(':').unwrap()];
                let first = vars.split(',').next().unwrap().trim();
                let padding = format!("lambda {vars}: {}", padding.replace("PLACE", first));
                let texts = Texts { map, shape, predicate, physical, inverse, padding: &padding };
                let claim = texts.read();
                let Some(truth) = claim.truth() else {
                    let vacuous = |(_, verdict): (_, Verdict)| matches!(verdict, Verdict::Vacuous(_));
                    assert!(claim.judged(&judge).into_iter().all(vacuous), "{map} where {predicate}");
                    continue;
                };
                let judged = claim.judged(&judge);
                for (obligation, is_true) in truth {
                    let verdict = &judged[&obligation];
                    let what = format!("{obligation} of {map} into {physical} where {predicate}, padding {padding}");
                    // Small constant shapes are decided.
                    match verdict {
                        Verdict::Proved(_) => assert!(is_true, "{what}: {verdict}"),
                        Verdict::Refuted(_) => assert!(!is_true, "{what}: {verdict}"),
                        Verdict::Unknown(_) | Verdict::Skipped(_) | Verdict::Vacuous(_) => panic!("{what}: {verdict}"),
                    }
                    (tried, shown) = (tried + 1, shown + usize::from(verdict.is_proved()));
                }
            }
        }
    }
    assert!(tried > 600 && shown > 100, "{shown} of {tried}");
}

#[test]
fn symbolic_restricted_maps_are_proved_and_their_broken_twins_are_not() {
    let right = Texts {
        map: "lambda i, j: [i * 4 + j]",
        shape: "(n + 3) // 4,4",
        predicate: "lambda i, j: i * 4 + j < n",
        physical: "n",
        inverse: "lambda p: [p // 4, p % 4]",
        padding: "lambda p: False",
    };
    let judge = judge();
    for (obligation, verdict) in right.read().judged(&judge) {
        if obligation != Obligation::Tight {
            assert!(verdict.is_proved(), "{obligation}: {verdict}");
        }
    }
    let twins = [
        (Texts { predicate: "lambda i, j: i * 4 + j <= n", ..right }, Obligation::Bounds),
        (Texts { physical: "n - 1", ..right }, Obligation::Bounds),
        (Texts { map: "lambda i, j: [i * 3 + j]", ..right }, Obligation::Injective),
        (Texts { predicate: "lambda i, j: i * 4 + j < n and j < 3", ..right }, Obligation::Inverse),
        (Texts { padding: "lambda p: p == n - 1", ..right }, Obligation::Padding),
        (Texts { predicate: "lambda i, j: i * 4 + j + 1 < n", ..right }, Obligation::Padding),
    ];
    for (number, (twin, obligation)) in twins.iter().enumerate() {
        let verdict = &twin.read().judged(&judge)[obligation];
        assert!(!verdict.is_proved(), "twin {number}: {obligation} is {verdict}");
    }
}

/// The verdicts on a claim.
fn judged(
    map: &str,
    (shape, predicate): (&str, &str),
    (physical, inverse): (&str, &str),
    padding: &str,
) -> BTreeMap<Obligation, Verdict> {
    Texts { map, shape, predicate, physical, inverse, padding }.read().judged(&judge())
}

#[test]
fn a_proof_about_the_box_is_none_that_something_is_reached_by_the_rest() {
    // On the box, digits show all of these for every extent.
    let (map, shape) = ("lambda i, j: [j, i]", "n,4");
    let (physical, inverse) = ("4,n", "lambda a, b: [b, a]");
    let whole = judged(map, (shape, "lambda i, j: i + j >= 0"), (physical, inverse), "lambda a, b: False");
    assert!(whole[&Obligation::Padding].is_proved(), "{}", whole[&Obligation::Padding]);
    for (predicate, is_loose) in
        [("lambda i, j: j < 3", true), ("lambda i, j: j != 1", false), ("lambda i, j: j >= 1", false)]
    {
        let restricted = judged(map, (shape, predicate), (physical, inverse), "lambda a, b: False");
        let open = [Obligation::Padding, Obligation::Inverse].into_iter().chain(is_loose.then_some(Obligation::Tight));
        for obligation in open {
            assert!(
                !restricted[&obligation].is_proved(),
                "{obligation} where {predicate}: {}",
                restricted[&obligation]
            );
        }
    }
}

#[test]
fn what_only_excluded_indices_reach_is_padding() {
    // Two indices share each place, and one of the two is left out for some places, both for others.
    let (map, shape) = ("lambda i, j: [i // 2 * 4 + j]", "6,4");
    let (physical, inverse) = ("12", "lambda p: [p // 4 * 2, p % 4]");
    // Fast evaluation, which is not believed, finds what is wrong with most claims first. It does not know that the divisor of the last
    // two is never 0.
    for (predicate, padding) in [
        ("i < 4", "p >= 8"),
        ("j != 2", "p % 4 == 2"),
        ("i >= 2 and j < 3", "p < 4 or p % 4 == 3"),
        ("i < 4 and 7 // (2 * i - 3) < 8", "p >= 8"),
        ("j != 2 and 7 // (2 * i - 3) < 8", "p % 4 == 2"),
    ] {
        let predicate = format!("lambda i, j: {predicate}");
        let right = judged(map, (shape, &predicate), (physical, inverse), &format!("lambda p: {padding}"));
        assert!(right[&Obligation::Padding].is_proved(), "{predicate}: {}", right[&Obligation::Padding]);
        for wrong in ["False", "p == 11"] {
            let wrong = judged(map, (shape, &predicate), (physical, inverse), &format!("lambda p: {wrong}"));
            assert!(!wrong[&Obligation::Padding].is_proved(), "{predicate}: {}", wrong[&Obligation::Padding]);
        }
    }
}

#[test]
fn an_excluded_index_does_not_reach_the_end_of_an_axis() {
    for (map, shape, physical, inverse) in [
        ("lambda i, j: [i * 4 + j]", "5,4", "20", "lambda p: [p // 4, p % 4]"),
        ("lambda i, j: [19 - i * 4 - j]", "5,4", "20", "lambda p: [(19 - p) // 4, (19 - p) % 4]"),
        ("lambda i, j: [i ^ 3, j]", "4,4", "4,4", "lambda a, b: [a ^ 3, b]"),
    ] {
        let vars = &inverse["lambda ".len()..inverse.find(':').unwrap()];
        let padding = format!("lambda {vars}: False");
        for predicate in ["i != 4 and i != 0", "i * 4 + j < 15 and i > 0", "i != 4 and i != 0 and 7 // (2 * i - 3) < 8"]
        {
            let predicate = format!("lambda i, j: {predicate}");
            let found = judged(map, (shape, &predicate), (physical, inverse), &padding);
            assert!(!found[&Obligation::Tight].is_proved(), "{map} where {predicate}: {}", found[&Obligation::Tight]);
        }
        let found = judged(map, (shape, "lambda i, j: i + j >= 0"), (physical, inverse), &padding);
        assert!(found[&Obligation::Tight].is_proved(), "{map}: {}", found[&Obligation::Tight]);
    }
}

#[test]
fn a_predicate_that_holds_nowhere_proves_nothing() {
    for (shape, predicate) in [("5,4", "i > 7"), ("5,4", "i < j and j < i"), ("n,4", "j > 4"), ("n,4", "i >= n")] {
        let (code, json) = map("lambda i, j: [i * 4 + j]", shape, &["--where", predicate]);
        for row in json["verdicts"].as_array().unwrap() {
            assert_ne!(row["verdict"], "proved", "{shape} where {predicate}: {row}");
        }
        assert_ne!(code, Some(0), "{shape} where {predicate}");
    }
    // A predicate without a value at some index says nothing of it.
    let (code, json) = map("lambda i, j: [i, j]", "5,4", &["--where", "i // j >= 0"]);
    assert!(json["verdicts"].as_array().unwrap().iter().all(|row| row["verdict"] != "proved"), "{json}");
    assert_ne!(code, Some(0));
}

#[test]
fn a_guard_makes_maps_injective_that_are_not_on_the_box() {
    let (code, json) = map("lambda i, j: [i % 8, j]", "13,7", &["--where", "i < 8"]);
    assert_eq!(verdict(&json, "injective", ""), "proved");
    assert_eq!(json["where"], "i < 8");
    // The inverse is that of the map on the indices below the bound.
    assert_eq!((code, json["inverse"].as_str()), (Some(0), Some("lambda i, j: [i, j]")), "{json}");
    assert!(json["premises"].as_array().unwrap().contains(&json!("only indices for which i < 8")), "{json}");
    let (_, json) = map("lambda i, j: [i % 8, j]", "13,7", &["--where", "i < 9"]);
    assert_eq!(verdict(&json, "injective", ""), "refuted");
    let (code, json) = map("lambda i, j: [i % 8, j]", "n,m", &["--where", "i <= 7"]);
    assert_eq!(verdict(&json, "injective", ""), "proved");
    assert_eq!((code, json["padding"].as_str()), (Some(0), Some("lambda i, j: i >= n")), "{json}");
    let (_, json) = map("lambda i, j: [i % 8, j]", "n,m", &["--where", "i != 8"]);
    assert_eq!(verdict(&json, "injective", ""), "refuted");
}

#[test]
fn the_physical_shape_and_the_padding_are_those_of_the_restricted_map() {
    let (code, json) = map("lambda io, ii: [io * 4 + ii]", "5,4", &["--where", "io * 4 + ii < 17", "--at", "4,0"]);
    assert_eq!(
        (code, &json["physical_shape"], &json["padding"]),
        (Some(0), &json!([17]), &json!("lambda io_ii_fused: False"))
    );
    let (code, json) = map("lambda i, j: [j, i]", "5,7", &["--where", "i != 2"]);
    assert_eq!((code, &json["padding"]), (Some(0), &json!("lambda j, i: i == 2")), "{json}");
    // An index to follow has to be one of the restricted domain.
    let run = tilewright(&["map", "lambda i, j: [j, i]", "--shape", "5,7", "--where", "i != 2", "--at", "2,0"]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("does not hold at [2, 0]"), "{}", run.stderr);
}

#[test]
fn a_predicate_is_read_in_the_names_of_the_map_or_as_a_lambda() {
    for predicate in ["h < 3 and w != 1", "lambda a, b: a < 3 and b != 1"] {
        let (code, json) = map("lambda h, w: [w, h]", "5,7", &["--where", predicate]);
        assert_eq!((code, json["where"].as_str()), (Some(0), Some("h < 3 and w != 1")), "{json}");
    }
    for (wrong, message) in [
        ("h <", "syntax error"),
        ("h + 1", "neither true nor false"),
        ("x < 3", "`x` is neither an index nor an extent"),
        ("lambda a: a < 3", "1 indices, but the shape has 2 axes"),
    ] {
        let run = tilewright(&["map", "lambda h, w: [w, h]", "--shape", "5,7", "--where", wrong]);
        assert_eq!(run.code, Some(2), "{wrong}");
        assert!(run.stderr.contains(message), "{wrong}: {}", run.stderr);
    }
}

#[test]
fn parts_are_those_that_tvm_finds_and_they_are_proved() {
    let (code, json) = map("lambda h, c: [c // 4 * 9 + h, c % 4 + 2]", "9,17", &["--parts"]);
    let part = |axis: &str, lower: i64, extent: i64, scale: i64| json!({"axis": axis, "lower_factor": lower, "extent": extent, "scale": scale});
    let expected = json!([
        {"parts": [part("c", 4, 5, 9), part("h", 1, 9, 1)], "base": 0},
        {"parts": [part("c", 1, 4, 1)], "base": 2},
    ]);
    assert_eq!((code, &json["parts"]), (Some(0), &expected), "{json}");
    assert_eq!(verdict(&json, "specification", "the sum of the parts"), "proved");
    let (code, json) = map("lambda i, j: [i * m + j]", "n,m", &["--parts"]);
    assert_eq!(code, Some(0), "{json}");
    assert_eq!(json["parts"][0]["parts"][0], json!({"axis": "i", "lower_factor": 1, "extent": "n", "scale": "m"}));
    // Whoever does not ask gets none.
    let (_, json) = map("lambda i, j: [j, i]", "5,7", &[]);
    assert!(json.get("parts").is_none() && json.get("subspace").is_none() && json.get("where").is_none());
}

#[test]
fn outer_and_inner_maps_are_proved_to_be_the_map() {
    let options = ["--inner", "j", "--where", "i < 11 and j != 3"];
    let (code, json) = map("lambda i, j: [i // 4, i % 4 * 8 + j]", "13,8", &options);
    let expected = json!({
        "outer": "lambda i: [i // 4, i % 4]", "inner": "lambda j: [0, j]", "extents": [1, 8],
        "outer_where": "i < 11", "inner_where": "j != 3",
    });
    assert_eq!((code, &json["subspace"]), (Some(0), &expected), "{json}");
    assert_eq!(verdict(&json, "specification", "outer * block shape + inner"), "proved");
    assert_eq!(verdict(&json, "bounds", "inner indices in the block"), "proved");
    assert_eq!(verdict(&json, "specification", "the predicates"), "proved");
    let (code, json) = map("lambda io, jo, ii, ji: [io * 4 + ii, jo * 5 + ji]", "n,m,4,5", &["--inner", "ii,ji"]);
    assert_eq!((code, &json["subspace"]["extents"]), (Some(0), &json!([4, 5])), "{json}");
}

#[test]
fn maps_that_do_not_divide_are_errors_at_their_place() {
    for (lambda, options, place) in [
        ("lambda i, j: [j, i // 4 + i % 6]", &["--parts"][..], "i // 4 + i % 6"),
        ("lambda i, j: [j, i * j]", &["--parts"], "i * j"),
        ("lambda i, j: [i, i * 7 + j]", &["--inner", "j"], "i * 7 + j"),
        ("lambda i, j: [i, (i + j) % 8]", &["--inner", "j"], "(i + j) % 8"),
    ] {
        let run = tilewright(&[&["map", lambda, "--shape", "13,8"], options].concat());
        assert_eq!(run.code, Some(2), "{lambda}: {}", run.stdout);
        assert!(run.stderr.contains(&"^".repeat(place.len())), "{lambda}: {}", run.stderr);
    }
    let mixed = ["map", "lambda i, j: [i * 8 + j]", "--shape", "13,8", "--inner", "j", "--where", "i * 8 + j < 99"];
    let run = tilewright(&mixed);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("relates outer indices to inner ones"), "{}", run.stderr);
    assert!(run.stderr.contains("<--where>:1:1"), "{}", run.stderr);
    let run = tilewright(&["map", "lambda i, j: [j, i]", "--shape", "13,8", "--inner", "k"]);
    assert!(run.code == Some(2) && run.stderr.contains("`k` is no parameter of the map"), "{}", run.stderr);
}
