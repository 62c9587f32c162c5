//! Memory plans of graphs, run with guard bands and poison on free.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tilewright_fuzz::look("planner", data));
