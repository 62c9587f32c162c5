//! The judge's verdicts on pairs of small programs against runs of both.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("judge_pairs", data));
