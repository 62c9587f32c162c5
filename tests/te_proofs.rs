//! The programs of the RFCs, lowered from TE: definition, lowering and every pass are proved.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;

use tilewright::passes::{pass_by_name, pipeline_of};
use tilewright::te::{Lowered, evaluate};
use tilewright_verify::{Config, Judge, Report};

fn lowered(file: &str) -> Vec<Lowered> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(file);
    let source = std::fs::read_to_string(path).unwrap();
    let program = tilewright_script::te::read(&source).unwrap();
    evaluate(&program, None).unwrap()
}

fn prove(file: &str) {
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    for lowered in lowered(file) {
        let mut reports: Vec<Report> = judge.check_definition(&lowered.definition);
        reports.extend(judge.check_lowering(&lowered.definition, &lowered.func, &lowered.evidence));
        let mut func = lowered.func.clone();
        for name in pipeline_of(&func).unwrap() {
            let rewritten = (pass_by_name(name).unwrap().run)(&func).unwrap();
            let found = judge.check_pass(&func, &rewritten.func, &rewritten.evidence);
            eprintln!("  {name}: {:.1} ms", found.iter().map(|report| report.ms).sum::<f64>());
            reports.extend(found);
            func = rewritten.func;
        }
        let total: f64 = reports.iter().map(|report| report.ms).sum();
        eprintln!("{file}::{} {} obligations, {total:.1} ms", lowered.func.name, reports.len());
        for report in &reports {
            if !report.verdict.is_proved() || report.ms > 20.0 {
                eprintln!(
                    "  {:10} {:50} {:.1} ms {} [{}]",
                    report.obligation, report.subject, report.ms, report.verdict, report.method
                );
            }
        }
        assert!(reports.len() > 3);
        let open: Vec<_> = reports.iter().filter(|report| !report.verdict.is_proved()).collect();
        assert!(open.is_empty(), "{file}: {open:?}");
    }
}

macro_rules! programs {
    ($($name:ident: $file:literal;)*) => {$(
        #[test]
        fn $name() {
            prove($file);
        }
    )*};
}

programs! {
    addone_is_proved: "addone.py";
    nhwc_to_nchwc_is_proved: "rfc39_nhwc_to_nchwc.py";
    the_equivalent_compute_is_proved: "rfc39_nhwc_equivalent.py";
    the_reference_examples_are_proved: "rfc39_reference.py";
    reordered_loops_are_proved: "rfc39_reorder.py";
    separators_are_proved: "rfc39_separators.py";
    separators_in_sequence_are_proved: "rfc39_separators_in_sequence.py";
    a_symbolic_layout_is_proved: "nhwc_to_nchw4c_symbolic.py";
    a_convolution_is_proved: "conv2d_resnet.py";
    tiles_that_are_computed_where_they_are_read_are_proved: "blur_tiled.py";
}
