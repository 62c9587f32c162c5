//! Claims of blocks that are wrong in a way that is easy to overlook, and right ones beside them: the programs of `tests/block_claims`.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use tilewright_compiler::blocks::inverses;
use tilewright_verify::{Config, Judge};

/// The first line of each program says what is expected: `# proved`, or `# unproved` and a part of the subject of a row that is not.
#[test]
fn wrong_claims_are_not_proved_and_right_ones_are() {
    let judge = Judge::new(Config::default(), tilewright_search::strategies()).unwrap();
    let (mut n_programs, mut unexpected) = (0, Vec::new());
    for entry in std::fs::read_dir("tests/block_claims").unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let func =
            tilewright_script::read_module(&text).unwrap_or_else(|found| panic!("{path:?}: {found:?}")).funcs.remove(0);
        let reports = judge.check_blocks(&func, &inverses(&func));
        let open: Vec<String> = reports
            .iter()
            .filter(|report| !report.verdict.is_proved())
            .map(|report| format!("{} {}: {}", report.obligation, report.subject, report.verdict))
            .collect();
        let expected = text.lines().next().unwrap().trim_start_matches("# ");
        let is_as_expected = match expected.strip_prefix("unproved ") {
            Some(subject) => open.iter().any(|row| row.contains(subject)),
            None => expected == "proved" && open.is_empty(),
        };
        if !is_as_expected {
            unexpected.push(format!("{path:?}: {expected}: {open:#?}"));
        }
        n_programs += 1;
    }
    assert_eq!(unexpected, Vec::<String>::new());
    assert!(n_programs >= 20, "{n_programs} programs");
}
