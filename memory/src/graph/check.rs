//! What can be wrong with a graph: names, views, sizes, and the order of writing and reading.
//!
//! Costs a few table look-ups for each tensor and each mention of it.

use std::collections::HashSet;

use tilewright_ir::{Diagnostic, Graph, GraphTensor, Room, ScalarType, TensorRole};

/// Bytes of all tensors together, at most: sums of sizes never overflow.
pub const MAX_BYTES: u64 = 1 << 62;

/// What a fault is about, for whoever knows where that stands in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The whole graph.
    Graph,
    /// A tensor.
    Tensor(usize),
    /// The tensor that a view is said to be of.
    ViewOf(usize),
    /// A step.
    Step(usize),
    /// What a step reads: the step, and which of its reads.
    Read(usize, usize),
    /// What a step writes: the step, and which of its writes.
    Write(usize, usize),
}

/// One thing that is wrong with a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// What; without a place in a text.
    pub diagnostic: Diagnostic,
}

fn fault(place: Place, code: &'static str, message: String, help: &str) -> Fault {
    Fault { place, diagnostic: Diagnostic::error(code, None, message).with_help(help) }
}

/// Everything that is wrong with a graph; a graph without a fault can be planned.
///
/// Codes: `graph-duplicate`, `graph-index`, `graph-tensor`, `graph-scope`, `graph-type`, `graph-empty-texture`, `texture-*`,
/// `graph-view-cycle`, `graph-view-size`, `graph-view-written`, `graph-view-input`, `graph-input-written`,
/// `graph-written-twice`, `graph-never-written`, `graph-read-early`, `graph-idle-step`, `graph-too-large`.
pub fn check(graph: &Graph) -> Vec<Fault> {
    let mut faults = indices(graph);
    if !faults.is_empty() {
        return faults;
    }
    names(graph, &mut faults);
    let rooms: Vec<Option<Room>> =
        graph.tensors.iter().enumerate().map(|(at, tensor)| room(at, tensor, &mut faults)).collect();
    let Some(roots) = roots(graph, &mut faults) else { return faults };
    views(graph, &rooms, &roots, &mut faults);
    order(graph, &roots, &mut faults);
    total(graph, &rooms, &mut faults);
    faults
}

/// The tensor whose memory each one shows: itself, unless it is a view. None if views go round in circles.
pub fn roots_of(graph: &Graph) -> Option<Vec<usize>> {
    roots(graph, &mut Vec::new())
}

fn indices(graph: &Graph) -> Vec<Fault> {
    let n = graph.tensors.len();
    let wrong = |place, at: usize| {
        let message = format!("tensor {at} is meant, but there are only {n}");
        fault(place, "graph-index", message, "tensors are named by their place in the list")
    };
    let views = graph.tensors.iter().enumerate();
    let views = views.filter_map(|(at, tensor)| Some((Place::ViewOf(at), tensor.view_of?)));
    let steps = graph.steps.iter().enumerate().flat_map(|(step, uses)| {
        let reads = uses.reads.iter().enumerate().map(move |(k, &at)| (Place::Read(step, k), at));
        reads.chain(uses.writes.iter().enumerate().map(move |(k, &at)| (Place::Write(step, k), at)))
    });
    views.chain(steps).filter(|&(_, at)| at >= n).map(|(place, at)| wrong(place, at)).collect()
}

fn names(graph: &Graph, faults: &mut Vec<Fault>) {
    let mut twice = |what: &str, names: &mut dyn Iterator<Item = (Place, &str)>| {
        let mut seen = HashSet::new();
        for (place, name) in names {
            if !seen.insert(name) {
                let message = format!("there are two {what}s with the name `{name}`");
                faults.push(fault(place, "graph-duplicate", message, "give each a name of its own"));
            }
        }
    };
    let tensors = graph.tensors.iter().enumerate();
    twice("tensor", &mut tensors.map(|(at, tensor)| (Place::Tensor(at), tensor.name.as_str())));
    let steps = graph.steps.iter().enumerate();
    twice("step", &mut steps.map(|(at, step)| (Place::Step(at), step.name.as_str())));
}

/// The room of a tensor, or why it has none.
fn room(at: usize, tensor: &GraphTensor, faults: &mut Vec<Fault>) -> Option<Room> {
    let place = Place::Tensor(at);
    let (name, dtype) = (&tensor.name, tensor.dtype);
    if dtype.scalar == ScalarType::Handle {
        let message = format!("`{name}` holds addresses");
        faults.push(fault(place, "graph-type", message, "give it an element type, such as float32"));
        return None;
    }
    match tensor.room() {
        Ok(Room::Texels { width, height }) if width == 0 || height == 0 => {
            let message = format!("texture `{name}` has no texels: it is {width} wide and {height} high");
            faults.push(fault(place, "graph-empty-texture", message, "leave it out, or put it in scope `global`"));
            None
        }
        Ok(room) => Some(room),
        Err(diagnostic) => {
            faults.push(Fault { place, diagnostic });
            None
        }
    }
}

/// Follows each chain of views once: a tensor whose root is known ends the walk.
fn roots(graph: &Graph, faults: &mut Vec<Fault>) -> Option<Vec<usize>> {
    const ON_THE_WAY: usize = usize::MAX;
    let mut roots: Vec<Option<usize>> = vec![None; graph.tensors.len()];
    let mut way = Vec::new();
    let mut sound = true;
    for start in 0..graph.tensors.len() {
        let mut at = start;
        let root = loop {
            match (roots[at], graph.tensors[at].view_of) {
                (Some(ON_THE_WAY), _) => {
                    let message = format!("`{}` is a view of itself, by way of other views", graph.tensors[at].name);
                    faults.push(fault(
                        Place::ViewOf(at),
                        "graph-view-cycle",
                        message,
                        "one of them has to have memory",
                    ));
                    sound = false;
                    break at;
                }
                (Some(root), _) => break root,
                (None, None) => {
                    way.push(at);
                    break at;
                }
                (None, Some(of)) => {
                    roots[at] = Some(ON_THE_WAY);
                    way.push(at);
                    at = of;
                }
            }
        };
        way.drain(..).for_each(|passed| roots[passed] = Some(root));
    }
    sound.then(|| roots.into_iter().flatten().collect())
}

fn views(graph: &Graph, rooms: &[Option<Room>], roots: &[usize], faults: &mut Vec<Fault>) {
    for (at, tensor) in graph.tensors.iter().enumerate() {
        if tensor.view_of.is_none() {
            continue;
        }
        let (name, root) = (&tensor.name, &graph.tensors[roots[at]]);
        if tensor.role == TensorRole::Input {
            let message = format!("input `{name}` is a view of `{}`", root.name);
            faults.push(fault(Place::Tensor(at), "graph-view-input", message, "an input has memory of its own"));
        }
        let (Some(room), Some(whole)) = (rooms[at], rooms[roots[at]]) else { continue };
        let same_texels = !root.scope.is_texture() || (tensor.scope == root.scope && tensor.dtype == root.dtype);
        if room != whole || !same_texels {
            let told = |tensor: &GraphTensor, room| format!("`{}` is {} {}", tensor.name, tensor.dtype, size(room));
            let message = format!("{}, and {}, whose memory it is to show", told(tensor, room), told(root, whole));
            let help = "a view has as many bytes as its root; of a texture, its scope, type, rows and columns";
            faults.push(fault(Place::ViewOf(at), "graph-view-size", message, help));
        }
    }
}

/// A room in words.
fn size(room: Room) -> String {
    match room {
        Room::Bytes(bytes) => format!("in {bytes} bytes"),
        Room::Texels { width, height } => format!("in {width}x{height} texels"),
    }
}

/// Who writes what, and who reads it too early.
fn order(graph: &Graph, roots: &[usize], faults: &mut Vec<Fault>) {
    let mut writer: Vec<Option<usize>> = vec![None; graph.tensors.len()];
    for (step, uses) in graph.steps.iter().enumerate() {
        for (k, &at) in uses.reads.iter().enumerate() {
            let root = &graph.tensors[roots[at]];
            if root.role != TensorRole::Input && writer[roots[at]].is_none() {
                let message =
                    format!("step `{}` reads `{}` before any step writes it", uses.name, graph.tensors[at].name);
                let help = "steps run in the order of the list; what is given from outside is an input";
                faults.push(fault(Place::Read(step, k), "graph-read-early", message, help));
            }
        }
        for (k, &at) in uses.writes.iter().enumerate() {
            if let Some((code, message, help)) = may_not_write(graph, step, at, writer[at]) {
                faults.push(fault(Place::Write(step, k), code, message, help));
            }
            writer[at] = Some(step);
        }
        if uses.writes.is_empty() {
            let message = format!("step `{}` writes nothing", uses.name);
            faults.push(fault(Place::Step(step), "graph-idle-step", message, "say what it writes, or leave it out"));
        }
    }
    for (at, tensor) in graph.tensors.iter().enumerate() {
        if writer[at].is_none() && tensor.view_of.is_none() && tensor.role != TensorRole::Input {
            let message = format!("no step writes `{}`, and it is no input", tensor.name);
            let help = "leave it out, list it in the inputs, or let a step write it";
            faults.push(fault(Place::Tensor(at), "graph-never-written", message, help));
        }
    }
}

fn may_not_write(
    graph: &Graph,
    step: usize,
    at: usize,
    writer: Option<usize>,
) -> Option<(&'static str, String, &'static str)> {
    let (step, tensor) = (&graph.steps[step].name, &graph.tensors[at]);
    let name = &tensor.name;
    if tensor.role == TensorRole::Input {
        let message = format!("step `{step}` writes the input `{name}`");
        return Some(("graph-input-written", message, "inputs are the caller's; write another tensor"));
    }
    if let Some(of) = tensor.view_of {
        let message = format!("step `{step}` writes `{name}`, a view of `{}`", graph.tensors[of].name);
        return Some(("graph-view-written", message, "write the tensor itself; views are for readers"));
    }
    let other = writer?;
    let message = format!("step `{step}` writes `{name}`, which step `{}` writes already", graph.steps[other].name);
    let help = "each tensor is written once; a sum of several steps is a new tensor each time";
    Some(("graph-written-twice", message, help))
}

fn total(graph: &Graph, rooms: &[Option<Room>], faults: &mut Vec<Fault>) {
    let bytes = |(tensor, room): (&GraphTensor, &Option<Room>)| room.map_or(0, |room| bytes_of(tensor, room));
    let sum: u128 = graph.tensors.iter().zip(rooms).map(bytes).sum();
    if sum > u128::from(MAX_BYTES) {
        let message = format!("all tensors together take {sum} bytes, more than 2^62");
        faults.push(fault(Place::Graph, "graph-too-large", message, "no machine has so much memory"));
    }
}

/// The bytes of a tensor's room; a texel has four channels.
pub(crate) fn bytes_of(tensor: &GraphTensor, room: Room) -> u128 {
    match room {
        Room::Bytes(bytes) => bytes.into(),
        Room::Texels { width, height } => {
            let texel = tensor.dtype.bytes() * u64::from(tilewright_ir::CHANNELS);
            u128::from(width).saturating_mul(height.into()).saturating_mul(texel.into())
        }
    }
}
