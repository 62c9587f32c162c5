//! The data of `tilewright plan`, and its JSON: schema `tilewright.plan/1`.
//!
//! ```json
//! {"schema":"tilewright.plan/1",
//!  "tensors":[{"name":"x","storage_id":0,"scope":"global","offset":0,"first":0,"last":3},
//!             {"name":"t","storage_id":1,"scope":"texture","x":0,"y":0,"width":7,"height":14,"first":0,"last":1}],
//!  "pools":[{"storage_id":0,"scope":"global","dtype":"uint8","shape":[392],"bytes":392},
//!           {"storage_id":1,"scope":"texture","dtype":"float16","shape":[7,14,4],"bytes":784}],
//!  "report":{"planner":"best","limits":"8192x8192","tensors":2,"steps":4,
//!            "bytes":{"unshared":1176,"compatible":1176,"planned":1176,"lower_bound":1176,"planned_per_unshared":1.0,
//!                     "planned_per_compatible":1.0,"planned_per_lower_bound":1.0},
//!            "peak":{"bytes":1176,"step":0,"name":"relu"},
//!            "parts":[{"scope":"global","class":"activations","dtype":null,"unit":"byte","unit_bytes":1,"unshared":392}]},
//!  "verdicts":[]}
//! ```
//!
//! Offsets are bytes; `x`, `y`, `width` and `height` are texels. `first` and `last` are the steps during which the
//! tensor's memory is needed, both included. A part is everything that can share pools; its amounts are in its unit,
//! those of `bytes` are the sums. With `--run` there is a field `run`, see [`super::plan_run`].

use std::collections::BTreeMap;

use serde::Serialize;
use tilewright_ir::{
    CHANNELS, Graph, GraphTensor, InPlace, MemoryPlan, Pool, PoolPlace, PoolRules, Region, Room, TensorRole,
};
use tilewright_verify::Report;

use super::check::obligations;
use super::model::ModelReport;
use super::plan_run::RunReport;
use crate::json::to_line;
use crate::pipeline::outcome::Summary;
use crate::planner::{Amounts, Figures, Lifetime, Part};

/// A graph's memory plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanReport {
    /// `tilewright.plan/1`.
    pub schema: &'static str,
    /// The place of each tensor, in the order of the graph.
    pub tensors: Vec<TensorRow>,
    /// The pools; `storage_id` is a place in this list.
    pub pools: Vec<PoolRow>,
    /// The amounts of memory.
    pub report: FiguresRow,
    /// The obligations of the plan with their verdicts.
    #[serde(serialize_with = "obligations")]
    pub verdicts: Vec<Report>,
    /// The results of running the graph, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunReport>,
    /// What was planned, if it is a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelReport>,
    /// The names of the steps.
    #[serde(skip)]
    pub steps: Vec<String>,
    /// The tensors that each step reads and writes.
    #[serde(skip)]
    pub uses: Vec<StepUses>,
    /// The function of each step; empty if it is not known.
    #[serde(skip)]
    pub functions: Vec<Option<String>>,
    /// For each tensor the one whose memory it shows: itself, unless it is a view.
    #[serde(skip)]
    pub roots: Vec<usize>,
    /// The name of the file of the graph.
    #[serde(skip)]
    pub file: String,
}

/// The tensors of a step, as places in [`PlanReport::tensors`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepUses {
    /// Those that it reads.
    pub reads: Vec<usize>,
    /// Those that it writes.
    pub writes: Vec<usize>,
}

/// The place and lifetime of a tensor.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TensorRow {
    /// Its name.
    pub name: String,
    /// Its pool.
    pub storage_id: usize,
    /// Its scope.
    pub scope: &'static str,
    /// The place in the pool.
    #[serde(flatten)]
    pub place: PlaceRow,
    /// The first step that needs the memory.
    pub first: usize,
    /// The last one. An operand that a result takes the place of needs its memory up to the step before.
    pub last: usize,
    /// The tensor in whose place the step writes this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_place_of: Option<String>,
    /// Shape and element type, as text.
    #[serde(skip)]
    pub what: String,
    /// Whether the caller gives or takes it.
    #[serde(skip)]
    pub role: TensorRole,
    /// Whether it is a view of another tensor.
    #[serde(skip)]
    pub is_view: bool,
    /// Bytes of its region; 0 for a texture.
    #[serde(skip)]
    pub size: u64,
}

/// A place in a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PlaceRow {
    /// In a pool of bytes.
    Byte {
        /// The first one.
        offset: u64,
    },
    /// In a texture.
    Texels {
        /// The first column.
        x: u64,
        /// The first row.
        y: u64,
        /// Columns.
        width: u64,
        /// Rows.
        height: u64,
    },
}

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolRow {
    /// Its place in the list.
    pub storage_id: usize,
    /// Its scope.
    pub scope: &'static str,
    /// Type of an element or a channel.
    pub dtype: String,
    /// `[bytes]`, or `[width, height, 4]`.
    pub shape: Vec<u64>,
    /// The size in bytes.
    pub bytes: u128,
}

/// The amounts of memory of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FiguresRow {
    /// The planner.
    pub planner: &'static str,
    /// The largest texture.
    pub limits: String,
    /// How many tensors there are.
    pub tensors: usize,
    /// How many steps.
    pub steps: usize,
    /// All memory in bytes.
    pub bytes: AmountsRow,
    /// The step in which the most memory is needed.
    pub peak: PeakRow,
    /// Buffers, and the textures of each scope and type.
    pub parts: Vec<PartRow>,
}

/// The step in which the tensors that are alive take the most memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PeakRow {
    /// Bytes of all tensors that are alive, constants included.
    pub bytes: u128,
    /// The number of the step, the first one of several.
    pub step: usize,
    /// Its name; empty if there are no steps.
    pub name: String,
}

/// Amounts of memory with four ways of allocation, and the planned one relative to the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AmountsRow {
    /// Each tensor has memory of its own.
    pub unshared: u128,
    /// With the compatible planner.
    pub compatible: u128,
    /// With this plan.
    pub planned: u128,
    /// What no plan falls below: see [`Amounts::lower_bound`].
    pub lower_bound: u128,
    /// This plan, with the unshared one as 1.
    pub planned_per_unshared: f64,
    /// This plan, with the compatible one as 1.
    pub planned_per_compatible: f64,
    /// This plan, with the lower bound as 1.
    pub planned_per_lower_bound: f64,
}

/// The tensors that can share pools: all buffers, or the textures of one scope and type.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PartRow {
    /// The scope.
    pub scope: &'static str,
    /// `constants`, or `activations`: all other tensors.
    pub class: &'static str,
    /// Type of a channel; null for buffers, which share whatever they hold.
    pub dtype: Option<String>,
    /// `byte` or `texel`.
    pub unit: &'static str,
    /// Bytes of one unit.
    pub unit_bytes: u64,
    /// The amounts in that unit.
    #[serde(flatten)]
    pub amounts: AmountsRow,
}

/// The input of a report.
#[derive(Clone, Debug)]
pub struct Planned<'a> {
    /// The name of the file of the graph.
    pub file: &'a str,
    /// The graph.
    pub graph: &'a Graph,
    /// The plan; one place for each tensor.
    pub plan: &'a MemoryPlan,
    /// The lifetime of each tensor.
    pub lifetimes: &'a [Lifetime],
    /// The steps that work in place.
    pub in_place: &'a [InPlace],
    /// The amounts of memory.
    pub figures: &'a Figures,
    /// The planner that made it.
    pub planner: &'static str,
    /// What textures have to be.
    pub rules: PoolRules,
}

impl PlanReport {
    /// The report, without verdicts.
    pub fn new(of: &Planned<'_>) -> Self {
        let graph = of.graph;
        let tensors = graph.tensors.iter().zip(&of.plan.places).zip(of.lifetimes).enumerate();
        let row = |(at, ((tensor, place), life)): (usize, ((&GraphTensor, &PoolPlace), &Lifetime))| {
            let pair = of.in_place.iter().find(|pair| pair.result == at);
            let (row, size) = match place.region {
                Region::Bytes { offset, size } => (PlaceRow::Byte { offset }, size),
                Region::Texels { x, y, width, height } => (PlaceRow::Texels { x, y, width, height }, 0),
            };
            // Sizes of textures are in `place`; `size` is for buffers only.
            TensorRow {
                name: tensor.name.clone(),
                storage_id: place.pool,
                scope: tensor.scope.name(),
                place: row,
                first: life.first,
                last: life.last,
                in_place_of: pair.map(|pair| graph.tensors[pair.operand].name.clone()),
                what: format!("{} {:?}", tensor.dtype, tensor.shape),
                role: tensor.role,
                is_view: tensor.view_of.is_some(),
                size,
            }
        };
        Self {
            schema: "tilewright.plan/1",
            tensors: tensors.map(row).collect(),
            pools: of.plan.pools.iter().enumerate().map(PoolRow::new).collect(),
            report: FiguresRow {
                planner: of.planner,
                limits: limits(of.rules),
                tensors: graph.tensors.len(),
                steps: graph.steps.len(),
                bytes: AmountsRow::new(of.figures.bytes),
                peak: peak(graph, of.lifetimes),
                parts: of.figures.parts.iter().map(PartRow::new).collect(),
            },
            verdicts: Vec::new(),
            run: None,
            model: None,
            steps: graph.steps.iter().map(|step| step.name.clone()).collect(),
            uses: graph
                .steps
                .iter()
                .map(|step| StepUses { reads: step.reads.clone(), writes: step.writes.clone() })
                .collect(),
            functions: Vec::new(),
            roots: (0..graph.tensors.len()).map(|at| root_of(graph, at)).collect(),
            file: of.file.to_owned(),
        }
    }

    /// The worst verdict of the plan and of the run.
    pub fn summary(&self) -> Summary {
        let run = self.run.iter().map(RunReport::summary);
        // A run cannot improve the verdict on the plan: the worse of both counts.
        Summary::of_reports(&self.verdicts).max(run.max().unwrap_or(Summary::Proved))
    }

    /// The reports on the plan and on the kernels.
    pub fn reports(&self) -> impl Iterator<Item = &Report> {
        self.verdicts.iter().chain(self.run.iter().flat_map(RunReport::reports))
    }

    /// The JSON document, on one line.
    pub fn to_json(&self) -> String {
        to_line(self)
    }
}

impl TensorRow {
    /// What the tensor is to the caller, or to another tensor; empty if there is nothing to say.
    pub(super) fn role_text(&self) -> String {
        let role = match (self.role, self.is_view) {
            (TensorRole::Input, _) => "input",
            (TensorRole::Constant, _) => "constant",
            (TensorRole::Output, false) => "output",
            (TensorRole::Output, true) => "output, view",
            (TensorRole::Intermediate, true) => "view",
            (TensorRole::Intermediate, false) => "",
        };
        match &self.in_place_of {
            None => role.to_owned(),
            Some(operand) if role.is_empty() => format!("in place of {operand}"),
            Some(operand) => format!("{role}, in place of {operand}"),
        }
    }
}

/// The tensor whose memory a tensor shows. A graph that was planned has no view of itself; the number of links is limited all the same.
fn root_of(graph: &Graph, mut at: usize) -> usize {
    for _ in 0..graph.tensors.len() {
        let Some(next) = graph.tensors[at].view_of else { break };
        at = next;
    }
    at
}

/// The step in which the most memory is needed. Views have no memory of their own.
fn peak(graph: &Graph, lifetimes: &[Lifetime]) -> PeakRow {
    let owners = graph.tensors.iter().zip(lifetimes).filter(|(tensor, _)| tensor.view_of.is_none());
    let mut changes: BTreeMap<usize, i128> = BTreeMap::new();
    for (tensor, life) in owners {
        let bytes = match tensor.room() {
            Ok(Room::Bytes(bytes)) => i128::from(bytes),
            Ok(Room::Texels { width, height }) => {
                let texel = i128::from(tensor.dtype.bytes()) * i128::from(CHANNELS);
                i128::from(width).saturating_mul(height.into()).saturating_mul(texel)
            }
            Err(_) => 0,
        };
        *changes.entry(life.first).or_default() += bytes;
        *changes.entry(life.last + 1).or_default() -= bytes;
    }
    let (mut now, mut most, mut at) = (0i128, 0i128, 0);
    for (step, change) in changes {
        now += change;
        if now > most {
            (most, at) = (now, step);
        }
    }
    let name = graph.steps.get(at).map(|step| step.name.clone()).unwrap_or_default();
    PeakRow { bytes: u128::try_from(most).unwrap_or(0), step: at, name }
}

/// The largest texture, and the pitch if there is one.
fn limits(rules: PoolRules) -> String {
    match rules.pitch {
        1 => rules.limits.to_string(),
        pitch => format!("{}, widths are multiples of {pitch}", rules.limits),
    }
}

impl PoolRow {
    fn new((storage_id, pool): (usize, &Pool)) -> Self {
        let (shape, bytes) = match pool.room {
            Room::Bytes(bytes) => (vec![bytes], bytes.into()),
            Room::Texels { width, height } => {
                let texel = u128::from(pool.dtype.bytes()) * u128::from(CHANNELS);
                (
                    vec![width, height, CHANNELS.into()],
                    u128::from(width).saturating_mul(height.into()).saturating_mul(texel),
                )
            }
        };
        Self { storage_id, scope: pool.scope.name(), dtype: pool.dtype.to_string(), shape, bytes }
    }
}

/// The class of constants.
const CONSTANTS: &str = "constants";

impl PartRow {
    /// Whether the part has the constants.
    pub(super) fn is_constant(&self) -> bool {
        self.class == CONSTANTS
    }

    fn new(part: &Part) -> Self {
        Self {
            scope: part.texture.map_or("global", |(scope, _)| scope.name()),
            class: if part.constants { CONSTANTS } else { "activations" },
            dtype: part.texture.map(|(_, dtype)| dtype.to_string()),
            unit: if part.texture.is_some() { "texel" } else { "byte" },
            unit_bytes: part.unit,
            amounts: AmountsRow::new(part.amounts),
        }
    }
}

impl AmountsRow {
    fn new(amounts: Amounts) -> Self {
        let Amounts { unshared, compatible, planned, lower_bound } = amounts;
        let per = |other| ratio(planned, other);
        Self {
            unshared,
            compatible,
            planned,
            lower_bound,
            planned_per_unshared: per(unshared),
            planned_per_compatible: per(compatible),
            planned_per_lower_bound: per(lower_bound),
        }
    }
}

/// A ratio in thousandths, rounded to the nearest; that of nothing to nothing is 1.
fn ratio(part: u128, whole: u128) -> f64 {
    let halves = part.saturating_mul(2000).checked_div(whole);
    let thousandths = halves.map_or(1000, |halves| halves.div_ceil(2));
    u32::try_from(thousandths).map_or(f64::MAX, |thousandths| f64::from(thousandths) / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_rounded_to_thousandths() {
        assert_eq!(
            [ratio(1, 3), ratio(2, 3), ratio(7, 7), ratio(0, 0)].map(|ratio| ratio.to_string()),
            ["0.333", "0.667", "1", "1"]
        );
    }
}
