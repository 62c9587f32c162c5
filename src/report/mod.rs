//! Outcomes rendered as text and JSON.
//!
//! [`check`], [`map`], [`layout`], [`relayout`], [`draw`], [`plan`] and [`fuzz`] hold what a command found and write it as
//! JSON; [`text`], [`map_text`], [`layout_text`], [`plan_text`] and [`fuzz_text`] write it for people, [`draw_text`],
//! [`draw_svg`] and [`plan_svg`] draw it. [`diagnostic`] is what is wrong with an input, as JSON; with source excerpts it is
//! rendered by `tilewright_script`. Nothing here decides anything.

pub mod check;
pub mod diagnostic;
pub mod draw;
mod draw_grid;
pub mod draw_svg;
pub mod draw_text;
#[cfg(feature = "campaign")]
pub mod fuzz;
#[cfg(feature = "campaign")]
pub mod fuzz_sabotage;
#[cfg(feature = "campaign")]
pub mod fuzz_text;
pub mod layout;
pub mod layout_text;
pub(crate) mod lines;
pub mod map;
pub mod map_text;
pub mod obligation;
pub mod palette;
pub mod plan;
mod plan_axis;
pub mod plan_run;
pub mod plan_svg;
pub mod plan_text;
pub mod relayout;
pub mod text;

pub use check::{Dim, FileReport};
pub use layout::LayoutReport;
pub use map::{AtRow, MapReport};
pub use plan::PlanReport;
pub use relayout::{BitcastReport, RelayoutReport};
