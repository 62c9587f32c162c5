//! Validates a graph: names, views, sizes, and the order of writes and reads.
//!
//! Costs a constant number of table look-ups for each tensor and each mention of it.

use std::collections::HashSet;

use tilewright_ir::{Diagnostic, Graph, GraphTensor, Room, ScalarType};

/// Limit on the sum of all tensors' sizes, in bytes. It leaves so much room that sums of sizes cannot overflow a
/// `u64`.
pub const MAX_BYTES: u64 = 1 << 62;

/// The part of a graph that a defect concerns. A reader of a text form maps it to a span of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Site {
    /// The whole graph.
    Graph,
    /// A tensor.
    Tensor(usize),
    /// The target of a tensor's `view_of`, by the number of the view.
    ViewOf(usize),
    /// A step.
    Step(usize),
    /// A tensor that a step reads: the number of the step, and the position among its reads.
    Read(usize, usize),
    /// A tensor that a step writes: the number of the step, and the position among its writes.
    Write(usize, usize),
}

/// One violated rule of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// The part of the graph that violates it.
    pub site: Site,
    /// The message, without a span.
    pub diagnostic: Diagnostic,
}

fn defect(site: Site, code: &'static str, message: String, help: &str) -> Defect {
    Defect { site, diagnostic: Diagnostic::error(code, None, message).with_help(help) }
}

/// Returns every defect of a graph; a graph without defects can be planned.
///
/// If an index is out of range, only such defects are returned, because nothing else can be checked.
///
/// Codes: `graph-name`, `graph-duplicate`, `graph-index`, `graph-tensor`, `graph-scope`, `graph-type`, `graph-empty-texture`, `texture-*`,
/// `graph-view-cycle`, `graph-view-size`, `graph-view-written`, `graph-view-input`, `graph-input-written`,
/// `graph-written-twice`, `graph-never-written`, `graph-read-early`, `graph-idle-step`, `graph-too-large`.
pub fn check(graph: &Graph) -> Vec<Defect> {
    let mut defects = unknown_indices(graph);
    if !defects.is_empty() {
        return defects;
    }
    check_names(graph, &mut defects);
    let rooms: Vec<Option<Room>> =
        graph.tensors.iter().enumerate().map(|(at, tensor)| room(at, tensor, &mut defects)).collect();
    let Some(roots) = roots_or_cycles(graph, &mut defects) else { return defects };
    check_views(graph, &rooms, &roots, &mut defects);
    check_order(graph, &roots, &mut defects);
    check_total(graph, &rooms, &mut defects);
    defects
}

/// The root of each tensor: the tensor at the end of its chain of views, which owns the memory; a tensor that is not
/// a view is its own root. `None` if views form a cycle.
pub fn roots_of(graph: &Graph) -> Option<Vec<usize>> {
    roots_or_cycles(graph, &mut Vec::new())
}

/// Mentions of tensors that do not exist.
fn unknown_indices(graph: &Graph) -> Vec<Defect> {
    let n = graph.tensors.len();
    let wrong = |site, at: usize| {
        let message = format!("tensor {at} is meant, but there are only {n}");
        defect(site, "graph-index", message, "tensors are named by their place in the list")
    };
    let views = graph.tensors.iter().enumerate();
    let views = views.filter_map(|(at, tensor)| Some((Site::ViewOf(at), tensor.view_of?)));
    let steps = graph.steps.iter().enumerate().flat_map(|(step, uses)| {
        let reads = uses.reads.iter().enumerate().map(move |(k, &at)| (Site::Read(step, k), at));
        reads.chain(uses.writes.iter().enumerate().map(move |(k, &at)| (Site::Write(step, k), at)))
    });
    views.chain(steps).filter(|&(_, at)| at >= n).map(|(site, at)| wrong(site, at)).collect()
}

/// Names that two tensors or two steps have in common, or that no report can show.
fn check_names(graph: &Graph, defects: &mut Vec<Defect>) {
    let mut report_duplicates = |what: &str, names: &mut dyn Iterator<Item = (Site, &str)>| {
        let mut seen = HashSet::new();
        for (site, name) in names {
            if name.chars().any(char::is_control) {
                let message = format!("the name {name:?} of a {what} has a control character");
                defects.push(defect(site, "graph-name", message, "reports, pictures and files name it: rename it"));
            }
            if !seen.insert(name) {
                let message = format!("there are two {what}s with the name `{name}`");
                defects.push(defect(site, "graph-duplicate", message, "give each a name of its own"));
            }
        }
    };
    let tensors = graph.tensors.iter().enumerate();
    report_duplicates("tensor", &mut tensors.map(|(at, tensor)| (Site::Tensor(at), tensor.name.as_str())));
    let steps = graph.steps.iter().enumerate();
    report_duplicates("step", &mut steps.map(|(at, step)| (Site::Step(at), step.name.as_str())));
}

/// The memory that a tensor needs, in bytes or texels, or a defect if it has no size.
fn room(at: usize, tensor: &GraphTensor, defects: &mut Vec<Defect>) -> Option<Room> {
    let site = Site::Tensor(at);
    let (name, dtype) = (&tensor.name, tensor.dtype);
    if dtype.scalar == ScalarType::Handle {
        let message = format!("`{name}` holds addresses");
        defects.push(defect(site, "graph-type", message, "give it an element type, such as float32"));
        return None;
    }
    match tensor.room() {
        Ok(Room::Texels { width, height }) if width == 0 || height == 0 => {
            let message = format!("texture `{name}` has no texels: it is {width} wide and {height} high");
            defects.push(defect(site, "graph-empty-texture", message, "leave it out, or put it in scope `global`"));
            None
        }
        Ok(room) => Some(room),
        Err(diagnostic) => {
            defects.push(Defect { site, diagnostic });
            None
        }
    }
}

/// Computes the roots by following each chain of views once: the walk ends at a tensor whose root is known.
fn roots_or_cycles(graph: &Graph, defects: &mut Vec<Defect>) -> Option<Vec<usize>> {
    const IN_PROGRESS: usize = usize::MAX;
    let mut roots: Vec<Option<usize>> = vec![None; graph.tensors.len()];
    let mut chain = Vec::new();
    let mut is_acyclic = true;
    for start in 0..graph.tensors.len() {
        let mut at = start;
        let root = loop {
            match (roots[at], graph.tensors[at].view_of) {
                // The walk returns to a tensor of the chain it is following.
                (Some(IN_PROGRESS), _) => {
                    let message = format!("`{}` is a view of itself, by way of other views", graph.tensors[at].name);
                    defects.push(defect(
                        Site::ViewOf(at),
                        "graph-view-cycle",
                        message,
                        "one of them has to have memory",
                    ));
                    is_acyclic = false;
                    break at;
                }
                (Some(root), _) => break root,
                (None, None) => {
                    chain.push(at);
                    break at;
                }
                (None, Some(target)) => {
                    roots[at] = Some(IN_PROGRESS);
                    chain.push(at);
                    at = target;
                }
            }
        };
        chain.drain(..).for_each(|member| roots[member] = Some(root));
    }
    is_acyclic.then(|| roots.into_iter().flatten().collect())
}

/// Views that are inputs, or that differ in size from their root. For a view of a texture, scope, element type, rows
/// and columns have to agree, because images cannot be reinterpreted.
fn check_views(graph: &Graph, rooms: &[Option<Room>], roots: &[usize], defects: &mut Vec<Defect>) {
    for (at, tensor) in graph.tensors.iter().enumerate() {
        if tensor.view_of.is_none() {
            continue;
        }
        let (name, root) = (&tensor.name, &graph.tensors[roots[at]]);
        if tensor.role.is_given() {
            let message = format!("input `{name}` is a view of `{}`", root.name);
            defects.push(defect(Site::Tensor(at), "graph-view-input", message, "an input has memory of its own"));
        }
        let (Some(room), Some(whole)) = (rooms[at], rooms[roots[at]]) else { continue };
        let same_texels = !root.scope.is_texture() || (tensor.scope == root.scope && tensor.dtype == root.dtype);
        if room != whole || !same_texels {
            let describe =
                |tensor: &GraphTensor, room| format!("`{}` is {} {}", tensor.name, tensor.dtype, size_in_words(room));
            let message =
                format!("{}, and {}, whose memory it is to show", describe(tensor, room), describe(root, whole));
            let help = "a view has as many bytes as its root; of a texture, its scope, type, rows and columns";
            defects.push(defect(Site::ViewOf(at), "graph-view-size", message, help));
        }
    }
}

/// The size of a tensor as words of a message.
fn size_in_words(room: Room) -> String {
    match room {
        Room::Bytes(bytes) => format!("in {bytes} bytes"),
        Room::Texels { width, height } => format!("in {width}x{height} texels"),
    }
}

/// Violations of the rule that each tensor is written once, before it is read.
fn check_order(graph: &Graph, roots: &[usize], defects: &mut Vec<Defect>) {
    let mut writer: Vec<Option<usize>> = vec![None; graph.tensors.len()];
    for (step, uses) in graph.steps.iter().enumerate() {
        // Reads come before the step's own writes: a step cannot read what it is about to write.
        for (k, &at) in uses.reads.iter().enumerate() {
            let root = &graph.tensors[roots[at]];
            if !root.role.is_given() && writer[roots[at]].is_none() {
                let message =
                    format!("step `{}` reads `{}` before any step writes it", uses.name, graph.tensors[at].name);
                let help = "steps run in the order of the list; what is given from outside is an input";
                defects.push(defect(Site::Read(step, k), "graph-read-early", message, help));
            }
        }
        for (k, &at) in uses.writes.iter().enumerate() {
            if let Some((code, message, help)) = write_error(graph, step, at, writer[at]) {
                defects.push(defect(Site::Write(step, k), code, message, help));
            }
            // A wrong write counts, too, so that a third writer is reported against the second one.
            writer[at] = Some(step);
        }
        if uses.writes.is_empty() {
            let message = format!("step `{}` writes nothing", uses.name);
            defects.push(defect(Site::Step(step), "graph-idle-step", message, "say what it writes, or leave it out"));
        }
    }
    for (at, tensor) in graph.tensors.iter().enumerate() {
        // A view is written when its root is.
        if writer[at].is_none() && tensor.view_of.is_none() && !tensor.role.is_given() {
            let message = format!("no step writes `{}`, and it is no input", tensor.name);
            let help = "leave it out, list it in the inputs, or let a step write it";
            defects.push(defect(Site::Tensor(at), "graph-never-written", message, help));
        }
    }
}

/// Why a step must not write tensor `at`, as code, message and help; `writer` is the earlier step that writes it.
/// `None` if it may.
fn write_error(
    graph: &Graph,
    step: usize,
    at: usize,
    writer: Option<usize>,
) -> Option<(&'static str, String, &'static str)> {
    let (step, tensor) = (&graph.steps[step].name, &graph.tensors[at]);
    let name = &tensor.name;
    if tensor.role.is_given() {
        let message = format!("step `{step}` writes the input `{name}`");
        return Some(("graph-input-written", message, "inputs are the caller's; write another tensor"));
    }
    if let Some(target) = tensor.view_of {
        let message = format!("step `{step}` writes `{name}`, a view of `{}`", graph.tensors[target].name);
        return Some(("graph-view-written", message, "write the tensor itself; views are for readers"));
    }
    let other = writer?;
    let message = format!("step `{step}` writes `{name}`, which step `{}` writes already", graph.steps[other].name);
    let help = "each tensor is written once; a sum of several steps is a new tensor each time";
    Some(("graph-written-twice", message, help))
}

/// The defect that the tensors together exceed [`MAX_BYTES`].
fn check_total(graph: &Graph, rooms: &[Option<Room>], defects: &mut Vec<Defect>) {
    let bytes = |(tensor, room): (&GraphTensor, &Option<Room>)| room.map_or(0, |room| bytes_of(tensor, room));
    let sum: u128 = graph.tensors.iter().zip(rooms).map(bytes).sum();
    if sum > u128::from(MAX_BYTES) {
        let message = format!("all tensors together take {sum} bytes, more than 2^62");
        defects.push(defect(Site::Graph, "graph-too-large", message, "no machine has so much memory"));
    }
}

/// The size of a tensor in bytes; a texel has four channels.
pub(crate) fn bytes_of(tensor: &GraphTensor, room: Room) -> u128 {
    match room {
        Room::Bytes(bytes) => bytes.into(),
        Room::Texels { width, height } => {
            let texel = tensor.dtype.bytes() * u64::from(tilewright_ir::CHANNELS);
            u128::from(width).saturating_mul(height.into()).saturating_mul(texel.into())
        }
    }
}
