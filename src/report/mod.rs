//! What is said to people and machines: diagnostics with source excerpts, reports as text and JSON.
//!
//! Data first ([`check`], [`map`], [`layout`], [`relayout`], [`draw`], [`plan`], [`fuzz`]), rendered in one place each: serde writes the JSON,
//! [`text`], [`map_text`], [`layout_text`], [`plan_text`] and [`fuzz_text`] what people read, [`draw_text`], [`draw_svg`] and [`plan_svg`] pictures, [`diagnostic`] the
//! excerpts. Nothing here decides or computes anything but the verdict of the whole.

pub mod check;
pub mod diagnostic;
pub mod draw;
mod draw_grid;
pub mod draw_svg;
pub mod draw_text;
pub mod fuzz;
pub mod fuzz_sabotage;
pub mod fuzz_text;
pub mod layout;
pub mod layout_text;
pub mod map;
pub mod map_text;
pub mod plan;
mod plan_axis;
pub mod plan_run;
pub mod plan_svg;
pub mod plan_text;
pub mod relayout;
pub mod text;

pub use check::{
    BufferRow, CheckReport, CounterexampleRow, Dim, EngineRow, EngineStatus, FileReport, ObligationRow, PassRow,
    Verdict,
};
pub use diagnostic::{DiagnosticRenderer, Source};
pub use layout::LayoutReport;
pub use map::{AtRow, MapReport};
pub use plan::PlanReport;
pub use relayout::{BitcastReport, RelayoutReport};
