//! Index maps, certificates and layouts constructed to deceive the judge: no wrong one is proved, no right one refuted.

#![allow(clippy::unwrap_used, reason = "a test may fail")]
#![allow(clippy::cloned_ref_to_slice_refs, reason = "an index is written as a list of expressions")]

mod common;

use common::map::Mapped;
use common::{int, judge};
use tilewright_ir::layout::{ArrayShape, Dimension, ElementType, Layout, Tile};
use tilewright_ir::{
    BinaryOp, Bindings, DigitCertificate, DigitPlace, DigitSource, DigitSum, DigitView, Expr, IndexMap, InverseClaim,
    ScalarType, SharedExpr, Var,
};
use tilewright_verify::{MapClaim, Obligation, PairClaim, Report, Verdict, digits};

fn long(value: i128) -> Expr {
    Expr::Int { value, ty: ScalarType::Int64 }
}

fn op(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    Expr::binary(op, a, b)
}

fn choose(condition: Expr, yes: Expr, no: Expr) -> Expr {
    Expr::IfThenElse(SharedExpr::new(condition), SharedExpr::new(yes), SharedExpr::new(no))
}

fn var(name: &str) -> (Var, Expr) {
    let var = Var::index(name);
    (var.clone(), Expr::from(&var))
}

fn map(vars: &[&Var], domain: &[Expr], outputs: Vec<Expr>) -> IndexMap {
    IndexMap::new(vars.iter().map(|&var| var.clone()).collect(), domain.to_vec(), outputs, Vec::new()).unwrap()
}

fn check(claim: MapClaim<'_>) -> Vec<Report> {
    let reports = judge().check_map(claim);
    for report in &reports {
        eprintln!("{:13} {:8.2} ms  {} [{}]", report.obligation, report.ms, report.verdict, report.method);
        let internal = matches!(&report.verdict, Verdict::Unknown(reason) if reason.is_internal());
        assert!(!internal, "{} of {}: {}", report.obligation, report.subject, report.verdict);
    }
    reports
}

fn verdict<'r>(reports: &'r [Report], id: &str) -> &'r Verdict {
    &reports.iter().find(|report| report.obligation.id() == id).unwrap().verdict
}

#[track_caller]
fn not_proved(reports: &[Report], ids: &[&str]) {
    for id in ids {
        assert!(!verdict(reports, id).is_proved(), "{id} is proved");
    }
}

#[track_caller]
fn proved(reports: &[Report]) {
    let open: Vec<_> = reports.iter().filter(|report| !report.verdict.is_proved()).collect();
    assert!(open.is_empty(), "{open:#?}");
}

/// 2^30 indices: too many to be looked at.
const MANY: &str = "1073741824";

#[test]
fn a_map_without_an_image_at_a_distant_index_is_not_proved() {
    // Zero, but without a value at one index.
    let nothing = |i: &str| {
        [
            format!("0 * (1 // ({i} - 123456789))"),
            format!("1 // ({i} - 123456789) % 1"),
            format!("0 * (1 >> T.if_then_else({i} == 123456789, 70000, 0))"),
            format!("0 * T.cast(T.if_then_else({i} == 123456789, 70000, 0), \"int8\")"),
        ]
    };
    let of = |index: &str| Mapped::new(&format!("lambda i: [{index}]"), MANY, MANY);
    let identity = of("i");
    for (zero, back) in nothing("i").into_iter().zip(nothing("p")) {
        let traps = of(&format!("i + {zero}"));
        assert!(traps.map.eval(&[123_456_789], &Bindings::new()).is_err(), "{zero}");
        let inverse = traps.inverse("lambda p: [p]", "lambda p: False");
        let reports = check(traps.claim().inverse(&inverse).meaning(&identity.map));
        not_proved(&reports, &["bounds", "injective", "overflow", "inverse", "padding", "specification"]);
        let reports = check(identity.claim().meaning(&traps.map));
        not_proved(&reports, &["specification"]);
        // The same in the inverse, or in the padding.
        let wrong = identity.inverse(&format!("lambda p: [p + {back}]"), "lambda p: False");
        not_proved(&check(identity.claim().inverse(&wrong)), &["inverse"]);
        let silent = identity.inverse("lambda p: [p]", &format!("lambda p: p + {back} != p"));
        not_proved(&check(identity.claim().inverse(&silent)), &["padding"]);
    }
}

#[test]
fn a_division_that_a_condition_guards_is_proved() {
    let guarded = Mapped::new("lambda i: [i + T.if_then_else(1 < n, i * 2 // (n - 1), i) * 0]", "n", "n");
    let reports = check(guarded.claim());
    for id in ["bounds", "injective"] {
        assert!(verdict(&reports, id).is_proved(), "{id}");
    }
}

// The variables of the next two tests are in several maps, which texts cannot say.

#[test]
fn the_names_of_the_indices_of_a_meaning_do_not_matter() {
    let ((i, ie), (j, je)) = (var("i"), var("j"));
    let shape = [int(1 << 20), int(1 << 20)];
    let mixed = |i: &Expr, j: &Expr| vec![i.clone(), op(BinaryOp::BitXor, j.clone(), i.clone().floor_mod(int(8)))];
    let swizzle = map(&[&i, &j], &shape, mixed(&ie, &je));
    let same = map(&[&j, &i], &shape, mixed(&je, &ie));
    proved(&check(MapClaim::new(&swizzle, &shape).meaning(&same)));
    let turned = map(&[&j, &i], &shape, mixed(&ie, &je));
    let reports = check(MapClaim::new(&swizzle, &shape).meaning(&turned));
    assert!(matches!(verdict(&reports, "specification"), Verdict::Refuted(_)));
    // Without bits, for all shapes.
    let [n, m] = ["n", "m"].map(|name| Expr::from(Var::index(name)));
    let shape = [n.clone(), m.clone()];
    let plain = map(&[&i, &j], &shape, vec![ie.clone() * m.clone() + je.clone()]);
    let slots = [n.clone() * m.clone()];
    let same = map(&[&j, &i], &shape, vec![je.clone() * m.clone() + ie.clone()]);
    proved(&check(MapClaim::new(&plain, &slots).meaning(&same)));
    let turned = map(&[&j, &i], &shape, vec![ie.clone() * m.clone() + je.clone()]);
    not_proved(&check(MapClaim::new(&plain, &slots).meaning(&turned)), &["specification"]);
}

#[test]
fn a_meaning_that_calls_an_index_by_the_name_of_an_extent_is_no_other_extent() {
    let ((i, ie), (n, ne)) = (var("i"), var("n"));
    // The difference shows beyond 2^20 alone.
    let large = int(1 << 20).lt(ne.clone());
    let last = map(&[&i], &[ne.clone()], vec![choose(large.clone(), ne.clone() - int(1) - ie.clone(), ie.clone())]);
    let lie = choose(large, int(0) - int(1), ne.clone());
    let meaning = map(&[&n], &[ne.clone()], vec![lie]);
    not_proved(&check(MapClaim::new(&last, &[ne.clone()]).meaning(&meaning)), &["specification"]);
    // An index of the map is nothing that a meaning may speak of.
    let a = Var::index("a");
    let identity = map(&[&i], &[ne.clone()], vec![ie.clone()]);
    let foreign = map(&[&a], &[ne.clone()], vec![ie]);
    let reports = judge().check_map(MapClaim::new(&identity, &[ne]).meaning(&foreign));
    assert!(!reports.iter().any(|report| report.obligation.id() == "specification" && report.verdict.is_proved()));
}

#[test]
fn an_extent_beyond_all_bits_is_not_tight() {
    let huge = "1048576, 4611686018427387904 * 4611686018427387904 * 2 + 1";
    let swizzle = Mapped::new("lambda i, j: [i, j ^ (i % 8)]", "1048576, 1048576", huge);
    not_proved(&check(swizzle.claim()), &["tight"]);
}

/// One output that is the only digit of the only axis.
fn plain_certificate(witness: i64) -> DigitCertificate {
    let place = DigitPlace { axis: 0, digit: 0, weight: int(1) };
    DigitCertificate {
        map: DigitView { radices: vec![vec![]], outputs: vec![DigitSum { places: vec![place], offset: int(0) }] },
        sources: vec![DigitSource { axis: 0, digit: 0, output: 0, place: 0 }],
        inverse: None,
        witnesses: vec![Some(vec![int(witness)])],
    }
}

#[test]
fn both_operands_of_an_or_must_have_a_value() {
    for either in ["-1 < i or 0 < 1 // (i - 50000)", "0 < 1 // (i - 50000) or -1 < i"] {
        let wrong = Mapped::new(&format!("lambda i: [T.if_then_else({either}, i, 0)]"), "100000", "100000");
        let certificate = plain_certificate(99_999);
        let claim = wrong.claim().digits(&certificate);
        if let Ok(checked) = digits::check(&claim, &certificate) {
            for obligation in ["bounds", "overflow", "injective"] {
                assert!(checked.shows(obligation.parse().unwrap()).is_err(), "{obligation}");
            }
        }
        not_proved(&check(claim), &["bounds", "overflow"]);
    }
}

#[test]
fn a_padding_predicate_without_a_value_shows_nothing() {
    let identity = Mapped::new("lambda i: [i]", "5000", "6000");
    let view = || plain_certificate(4999).map;
    let certificate = DigitCertificate { inverse: Some(view()), witnesses: vec![None], ..plain_certificate(4999) };
    for padding in ["4999 < p or 0 < 1 // (p - 5500)", "0 < 1 // (p - 5500) or 4999 < p"] {
        let inverse = identity.inverse("lambda p: [p]", &format!("lambda p: {padding}"));
        let claim = identity.claim().padded(&[0]).inverse(&inverse).digits(&certificate);
        if let Ok(checked) = digits::check(&claim, &certificate) {
            assert!(checked.shows(Obligation::Padding).is_err() && checked.shows(Obligation::Inverse).is_err());
        }
        not_proved(&check(claim), &["padding"]);
    }
}

fn array(extents: &[u64], layout: Layout) -> ArrayShape {
    let dimensions = extents.iter().map(|&extent| Dimension::Static(extent)).collect();
    ArrayShape::new(ElementType::F32, dimensions, Some(layout)).unwrap()
}

#[test]
fn a_permutation_names_every_dimension_once() {
    let tiles = [[1].as_slice(), &[1, 3]].map(|tile| Tile::from_vector(tile).unwrap()).to_vec();
    let from = array(&[2], Layout::row_major(1).with_tiles(tiles));
    let tail = Layout { tail_alignment: 6, ..Layout::row_major(2) };
    let to = array(&[2, 2], tail);
    let reindex = Mapped::new("lambda i: [i, i]", "2", "2, 2");
    let claim = PairClaim {
        from: &from,
        to: &to,
        to_extents: &reindex.shape,
        reindex: &reindex.map,
        permutation: Some(&[0, 0]),
    };
    let report = judge().check_bitcast(&claim);
    assert!(!report.verdict.is_proved(), "{}", report.method);
}

#[test]
fn the_first_fault_is_found_in_a_large_part() {
    // The second output is a part of more than a few thousand points, and fails at (0, 72) already.
    let late = Mapped::new("lambda i, j: [i, T.max(i, T.if_then_else(i == j, 2, j))]", "67, 73", "66, 72");
    let reports = check(late.claim());
    let Verdict::Refuted(found) = verdict(&reports, "bounds") else { panic!("bounds hold") };
    assert_eq!(found.indices, [[0, 72]]);
}

/// Certificates of two outputs of `i` in the radix `by`, whatever is claimed of them: numbers from a list, the rest as it
/// would be.
#[test]
fn obligations_shown_by_random_certificates_hold() {
    let mut state = 7u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((state >> 33) % bound as u64).unwrap()
    };
    let (mut shown, mut refused) = (0, 0);
    for _ in 0..6000 {
        let (extent, by) = ([1, 7, 12, 13, 24][below(5)], [2i64, 3, 4, 12, 13][below(5)]);
        let (i, ie) = var("i");
        let radix = [by, by, by, 0, -by, by + 1, 1, i64::MAX][below(8)];
        let radices = if below(6) == 0 { vec![] } else { vec![int(radix)] };
        let place = |digit: usize, weight: i64| DigitPlace { axis: 0, digit, weight: int(weight) };
        // An output, and its digits as they may be claimed.
        let mut output = || match below(7) {
            0 => (ie.clone(), if radices.is_empty() { vec![place(0, 1)] } else { vec![place(0, 1), place(1, radix)] }),
            1 => (ie.clone().floor_div(int(by)), vec![place(1, 1)]),
            2 => (ie.clone().floor_mod(int(by)), vec![place(0, 1)]),
            3 => (int(by - 1) - ie.clone().floor_mod(int(by)), vec![place(0, -1)]),
            4 => (ie.clone().floor_div(int(by)) * int(0), vec![]),
            5 => (
                ie.clone().floor_mod(int(by)) * int(by) + ie.clone().floor_div(int(by)),
                vec![place(1, 1), place(0, by)],
            ),
            _ => (ie.clone().floor_div(int(by)) * int(by + 1), vec![place(1, by + 1)]),
        };
        let parts = [output(), output()];
        let wrong = map(&[&i], &[int(extent)], parts.iter().map(|part| part.0.clone()).collect());
        let images: Vec<Vec<i128>> =
            (0..extent).map(|at| wrong.eval(&[at.into()], &Bindings::new()).unwrap()).collect();
        let most = |axis: usize| images.iter().map(|image| image[axis]).max().unwrap();
        let shape: Vec<i128> = (0..2).map(|axis| (most(axis) + [1, 1, 1, 2, 0][below(5)]).max(1)).collect();
        let sums = parts.iter().map(|(output, places)| {
            let offset = if matches!(output, Expr::Binary(BinaryOp::Sub, ..)) { by - 1 } else { 0 };
            DigitSum { places: places.clone(), offset: int([offset, offset, offset, 0][below(4)]) }
        });
        let outputs: Vec<DigitSum> = sums.collect();
        let mut sources = Vec::new();
        for digit in 0..=radices.len() {
            let found = outputs
                .iter()
                .enumerate()
                .find_map(|(output, sum)| Some((output, sum.places.iter().position(|place| place.digit == digit)?)));
            sources.extend(found.map(|(output, place)| DigitSource { axis: 0, digit, output, place }));
        }
        if below(4) == 0 {
            sources.clear();
        }
        let values = [0, by - 1, (extent - 1) / by, (extent - 1) % by];
        let mut witness =
            |sum: &DigitSum| (below(4) > 0).then(|| sum.places.iter().map(|_| int(values[below(4)])).collect());
        let witnesses = outputs.iter().map(&mut witness).collect();
        let certificate = DigitCertificate {
            map: DigitView { radices: vec![radices.clone()], outputs },
            sources,
            inverse: None,
            witnesses,
        };
        let extents: Vec<Expr> = shape.iter().map(|extent| long(*extent)).collect();
        let claim = MapClaim::new(&wrong, &extents);
        let Ok(checked) = digits::check(&claim, &certificate) else {
            refused += 1;
            continue;
        };
        let inside = images.iter().all(|image| image.iter().zip(&shape).all(|(at, extent)| (0..*extent).contains(at)));
        let apart = (0..images.len()).all(|at| !images[..at].contains(&images[at]));
        let tight = (0..2).all(|axis| images.iter().any(|image| image[axis] + 1 == shape[axis]));
        for (obligation, truth) in [("bounds", inside), ("injective", apart), ("tight", tight)] {
            let is_shown = checked.shows(obligation.parse().unwrap()).is_ok();
            assert!(!is_shown || truth, "{obligation} of {wrong} on {extent} into {shape:?}: {certificate:?}");
            shown += usize::from(is_shown);
        }
    }
    assert!(shown > 100 && refused > 300, "{shown} shown, {refused} refused");
}

#[test]
fn an_inverse_that_is_not_an_index_map_is_not_proved() {
    let (p, pe) = var("p");
    let float = Expr::float_of(0.0, ScalarType::Float32);
    let partial = Mapped::new("lambda i, j: [T.if_then_else(5 < i, 1 // i, i), j]", "3, 3", "3, 3");
    let claims = [
        InverseClaim {
            vars: vec![p.clone(), p.clone()],
            outputs: vec![pe.clone(), pe.clone()],
            padding: Expr::bool(false),
        },
        InverseClaim {
            vars: vec![p, Var::index("q")],
            outputs: vec![float.clone(), float],
            padding: Expr::bool(false),
        },
    ];
    for inverse in claims {
        let reports = check(partial.claim().inverse(&inverse));
        assert!(!reports.iter().any(|report| report.obligation.id() == "inverse" && report.verdict.is_proved()));
    }
}
