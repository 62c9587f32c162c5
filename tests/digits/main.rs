//! Digit certificates, found and checked: true maps are proved without a search, broken twins never, mutations are rejected.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod cases;
mod random;

use std::time::Instant;

use cases::Case;
use tilewright::algebra::digit_certificate;
use tilewright::fuzz::mutate::certificate as mutate;
use tilewright_ir::DigitCertificate;
use tilewright_verify::digits::{OBLIGATIONS, check};
use tilewright_verify::{Config, Judge, Method, Obligation, Report};

fn certificate(case: &Case) -> DigitCertificate {
    digit_certificate(&case.map, &case.shape, case.inverse.as_ref(), case.meaning.as_ref(), &case.assumptions)
        .unwrap_or_else(|| panic!("no certificate for {}", case.map))
}

/// What the checker accepts of a certificate, without a solver.
fn shown(case: &Case, certificate: &DigitCertificate) -> Vec<&'static str> {
    match check(&case.claim(), certificate) {
        Ok(checked) => OBLIGATIONS.into_iter().filter(|id| checked.shows(*id).is_ok()).map(Obligation::id).collect(),
        Err(_) => Vec::new(),
    }
}

fn reports(case: &Case) -> Vec<Report> {
    let certificate = certificate(case);
    Judge::new(Config::default(), tilewright_search::strategies()).unwrap().check_map(case.claim().digits(&certificate))
}

#[test]
fn true_maps_are_proved_by_digits() {
    let mut open = Vec::new();
    for case in cases::all() {
        let certificate = certificate(&case);
        for _ in 0..20 {
            let _ = check(&case.claim(), &certificate);
        }
        let start = Instant::now();
        let checked = check(&case.claim(), &certificate);
        let alone = start.elapsed();
        eprintln!("{} into {:?}: check alone {alone:?}", case.map, case.text);
        let checked = match checked {
            Ok(checked) => checked,
            Err(reason) => {
                open.push(format!("{}: {reason}", case.map));
                continue;
            }
        };
        eprintln!("  {} instances", checked.instances().count());
        let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
        for report in judge.check_map(case.claim().digits(&certificate)) {
            eprintln!("  {:14} {:8.2} ms  {} [{}]", report.obligation, report.ms, report.verdict, report.method);
            let why = checked.shows(report.obligation);
            // Of a constant shape, ranges and points decide much before digits are asked.
            let by_digits = report.method.to_string().starts_with("digits") || !is_symbolic(&case);
            if !report.verdict.is_proved() || why.is_err() || !by_digits {
                open.push(format!(
                    "{} of {}: {} [{}] {why:?}",
                    report.obligation, case.map, report.verdict, report.method
                ));
            }
        }
    }
    assert!(open.is_empty(), "{}", open.join("\n"));
}

fn is_symbolic(case: &Case) -> bool {
    case.map.domain().iter().any(|extent| extent.as_const_int().is_none())
}

#[test]
fn broken_twins_are_never_shown() {
    for (obligation, case) in cases::broken() {
        let found = digit_certificate(&case.map, &case.shape, case.inverse.as_ref(), None, &case.assumptions);
        if let Some(certificate) = found {
            let shown = shown(&case, &certificate);
            assert!(!shown.contains(&obligation), "{obligation} of {} into {:?}", case.map, case.text);
        }
    }
}

#[test]
fn a_certificate_shows_nothing_of_another_map() {
    let cases = cases::all();
    for (position, case) in cases.iter().enumerate() {
        for (other, wrong) in cases.iter().enumerate() {
            if position != other {
                let lies = certificate(wrong);
                let accepted = check(&case.claim(), &lies).is_ok();
                assert!(!accepted || lies == certificate(case), "{} by the certificate of {}", case.map, wrong.map);
            }
        }
    }
}

#[test]
fn every_one_place_mutation_is_rejected() {
    let mut count = 0;
    for case in cases::all() {
        let valid = certificate(&case);
        let before = shown(&case, &valid);
        assert!(!before.is_empty());
        for (what, mutant) in mutate::all(&valid) {
            if mutant == valid {
                continue;
            }
            count += 1;
            let after = shown(&case, &mutant);
            let kept = before.iter().all(|obligation| after.contains(obligation));
            assert!(!kept, "{what} changes nothing for {} into {:?}: {mutant:?}", case.map, case.text);
        }
    }
    eprintln!("{count} mutations rejected");
    assert!(count > 500);
}

#[test]
fn what_digits_show_of_random_maps_is_true() {
    let (mut found, mut shown_injective) = (0, 0);
    for seed in 0..3000 {
        let case = random::case(seed);
        let Some(certificate) = digit_certificate(&case.map, &case.shape, None, None, &[]) else { continue };
        found += 1;
        let shown = shown(&case, &certificate);
        let truth = random::truth(&case);
        for (obligation, holds) in truth {
            assert!(holds || !shown.contains(&obligation), "{obligation} of {} into {:?}", case.map, case.text);
        }
        shown_injective += usize::from(shown.contains(&"injective"));
    }
    eprintln!("{found} certificates, {shown_injective} injective");
    assert!(found > 1000 && shown_injective > 300);
}

#[test]
fn reports_say_how_many_instances_were_confirmed() {
    let case = cases::all().into_iter().find(is_symbolic).unwrap();
    for report in reports(&case) {
        assert!(matches!(report.method, Method::Digits { confirmed: true, .. }), "{}", report.method);
    }
}
