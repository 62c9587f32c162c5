//! The judge's verdicts on passes against runs: what it proves must be so, also of a program or of evidence with a mistake in it;
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("judge_programs", data));
