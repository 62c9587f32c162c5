//! What all targets share: an input goes to an oracle, and what fails ends the process, for libFuzzer to see.

use std::sync::Once;

use tilewright_campaign::session::remember_panics;
use tilewright_campaign::target::{self, Stopped};

/// Gives an input to the oracle of that name.
///
/// # Panics
/// The oracle fails on it. The text is the finding, reduced; its file lies beside libFuzzer's artifacts.
pub fn look(oracle: &str, data: &[u8]) {
    static ONCE: Once = Once::new();
    // libfuzzer-sys ends the process at every panic, also at those that are caught to be reduced and written down.
    ONCE.call_once(remember_panics);
    match target::run(oracle, data, &target::artifacts()) {
        Ok(()) => {}
        Err(Stopped::Skipped(why)) => {
            static ONCE: Once = Once::new();
            ONCE.call_once(|| eprintln!("skipped: {oracle}: {why}"));
        }
        Err(Stopped::Failed(text)) => {
            eprintln!("{text}");
            panic!("the oracle {oracle} fails");
        }
    }
}
