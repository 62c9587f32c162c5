//! Outcomes rendered as text, JSON and SVG.
//!
//! Each command has a module with its data, which is also its JSON document: [`check`], [`map`], [`layout`],
//! [`relayout`], [`draw`], [`plan`] and `fuzz`. Modules named after these write the data for people: [`text`] (of
//! [`check`]), [`map_text`], [`layout_text`], [`plan_text`] and `fuzz_text` as text, [`draw_text`], [`draw_svg`],
//! [`plan_svg`] and [`network_svg`] as pictures, [`plan_html`] as a page. [`diagnostic`] is the JSON of faults in an input; as text they are rendered by
//! `tilewright_script`. Nothing here decides anything: verdicts come from the checker and the engines.

pub mod bench;
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
pub mod model;
pub mod moved;
pub mod network_svg;
pub mod obligation;
pub mod palette;
pub mod plan;
mod plan_axis;
pub mod plan_html;
pub mod plan_run;
pub mod plan_svg;
pub mod plan_text;
pub mod relayout;
pub mod text;
pub mod validate;

pub use check::{Dim, FileReport};
pub use layout::LayoutReport;
pub use map::{Answer, AtRow, MapReport, PartRow, PartsRow, SubspaceRow};
pub use plan::PlanReport;
pub use relayout::{BitcastReport, RelayoutReport};
