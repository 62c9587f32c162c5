//! The judge's queries in SMT-LIB, read by an evaluator of the oracle's own, against evaluation
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("encoder", data));
