//! The time of the parts of a proof: what is found, what is checked, what Z3 confirms.
//!
//! *certificate*: physical shape, inverse and padding, digits are found, and the judge's checker holds the certificate against
//! the map: bounds, injective, tight, overflow, inverse and padding are shown, up to the instances of lemmas that it
//! collects. *confirmation*: Z3 on these instances, by a judge that remembers nothing but the lemmas of the process. Only both together are *proved*.
//! *whole*: all reports of a judge that remembers nothing, with whatever tier decides.

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tilewright::algebra;
use tilewright_ir::IndexMap;
use tilewright_verify::digits::{OBLIGATIONS, check};
use tilewright_verify::{Config, Judge, MapClaim, Obligation};

use crate::maps::{CONSTANT, Claimed, read_map};

/// The median of the times of `run`, in microseconds.
pub(crate) fn median(mut run: impl FnMut()) -> f64 {
    let (mut times, begin) = (Vec::new(), Instant::now());
    while times.len() < 7 || (times.len() < 2000 && begin.elapsed() < Duration::from_millis(20)) {
        let start = Instant::now();
        run();
        times.push(start.elapsed().as_nanos());
    }
    times.sort_unstable();
    times[times.len() / 2] as f64 / 1e3
}

/// What is claimed of a map.
fn find(map: &IndexMap) -> Option<Claimed> {
    let algebra::PhysicalShape { extents, padded_axes } = algebra::physical_shape(map, &[]).ok()?;
    let inverse = algebra::inverse(map, &extents, &[]).ok();
    Some(Claimed { name: "", map: map.clone(), shape: extents, padded: padded_axes, inverse })
}

/// The obligations that the digits show.
fn shown(claimed: &Claimed) -> Vec<&'static str> {
    let mut claim = MapClaim::new(&claimed.map, &claimed.shape).padded(&claimed.padded);
    claim.inverse = claimed.inverse.as_ref();
    let Some(digits) = algebra::digit_certificate(&claimed.map, &claimed.shape, claim.inverse, None, &[]) else {
        return Vec::new();
    };
    let Ok(checked) = check(&claim, &digits) else { return Vec::new() };
    OBLIGATIONS.into_iter().filter(|id| checked.shows(*id).is_ok()).map(Obligation::id).collect()
}

/// All times of a map.
pub(crate) fn measure(text: &str, shape: &str) -> Value {
    let map = read_map(["", text, shape]);
    let Some(claimed) = find(&map) else { return json!({ "error": "the map has no physical shape" }) };
    let mut claim = MapClaim::new(&claimed.map, &claimed.shape).padded(&claimed.padded);
    claim.inverse = claimed.inverse.as_ref();
    let digits = algebra::digit_certificate(&map, &claimed.shape, claim.inverse, None, &[]);
    claim.digits = digits.as_ref();
    let shape_us = median(|| drop(black_box(algebra::physical_shape(&map, &[]))));
    let inverse_us = median(|| drop(black_box(algebra::inverse(&map, &claimed.shape, &[]))));
    let digits_us =
        median(|| drop(black_box(algebra::digit_certificate(&map, &claimed.shape, claim.inverse, None, &[]))));
    let check_us = digits.as_ref().map(|digits| median(|| drop(black_box(check(&claim, digits)))));
    let checked = digits.as_ref().and_then(|digits| check(&claim, digits).ok());
    let confirmation_us = checked.as_ref().map(|checked| {
        median(|| {
            let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
            assert!(black_box(checked.is_confirmed(&judge)), "{text}: Z3 does not confirm the instances");
        })
    });
    let certificate_us = median(|| drop(black_box(find(&map).map(|claimed| shown(&claimed)))));
    let judge_us = median(|| drop(black_box(Judge::new(Config::default(), tilewright_search::strategies()))));
    let whole_us = median(|| {
        drop(black_box(Judge::new(Config::default(), tilewright_search::strategies()).unwrap().check_map(claim)));
    });
    let reports = Judge::new(Config::default(), tilewright_search::strategies()).unwrap().check_map(claim);
    let verdicts: Vec<_> = reports
        .iter()
        .map(|report| json!([report.obligation.id(), report.verdict.word(), report.method.to_string(), report.ms]))
        .collect();
    json!({
        "shape_us": shape_us, "inverse_us": inverse_us, "digits_us": digits_us, "check_us": check_us,
        "certificate_us": certificate_us, "confirmation_us": confirmation_us, "judge_us": judge_us, "whole_us": whole_us,
        "inverse": claimed.inverse.as_ref().map(|inverse| [inverse.lambda(), inverse.padding_lambda()]),
        "shown": shown(&claimed), "has_inverse": claimed.inverse.is_some(), "reports": verdicts,
    })
}

/// A row a map.
pub(crate) fn table() {
    println!("| map | certificate us | shape | inverse | digits | check | confirmation us | whole us | shown |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for [name, text, shape] in CONSTANT {
        let of = measure(text, shape);
        let number = |key: &str| of[key].as_f64().map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} |",
            number("certificate_us"),
            number("shape_us"),
            number("inverse_us"),
            number("digits_us"),
            number("check_us"),
            number("confirmation_us"),
            number("whole_us"),
            of["shown"].as_array().map_or(0, Vec::len)
        );
    }
}
