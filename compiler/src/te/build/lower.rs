//! From a schedule to a program: a nest for each stage at the root, in the order of the stages.
//!
//! ```python
//! B = te.compute((7,), lambda i: A[i] + 1)      for i_outer in range(2):
//! s[B].split(B.op.axis[0], 4)                       for i_inner in range(4):
//!                                                       if i_outer * 4 + i_inner < 7:
//!                                                           B[i_outer * 4 + i_inner] = A[i_outer * 4 + i_inner] + 1
//! ```
//!
//! A reduction has two nests inside the loops up to the first reduced one: the first stores the identity in every element,
//! the second combines. A stage that is computed in a loop of another one has its nest at the root too, and a step of the schedule
//! moves it, so that the move is a rewrite of its own which is proved; further steps make its own loops again there. Layouts are recorded in `layout_transform_map`, and `apply_buffer_transforms` applies them to
//! buffers and indices; the loops already run over the axes of the layout.

use std::sync::Arc;

use std::collections::HashMap;

use tilewright_ir::{
    AttrValue, AxisSeparators, Buffer, DataType, Definition, Diagnostic, Expr, ForKind, FuncAttrs, Holder,
    LoweringEvidence, PrimFunc, ScheduleStep, Span, StageBody, Stmt, StmtKind, StoreClaim, StoreRole, TileRequest, Var,
};

use tilewright_script::MAX_SCOPES;

use super::attach;
use super::inline::{effective_body, written_body};
use super::nest::{Nest, Site};
use super::schedule::ScheduleData;
use super::stage::{Attached, StageData, Work};
use super::unroll;
use super::{Built, Tensor, TensorData, TensorKind};

/// A schedule, lowered.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The definition that the program computes, without the schedule and its caches.
    pub definition: Definition,
    /// The definition as its author wrote it, if the schedule computes a reduction in two stages.
    pub written: Option<Definition>,
    /// The program: one nest for each stage, with layouts as attributes.
    pub func: PrimFunc,
    /// Which loops compute which tensor.
    pub evidence: LoweringEvidence,
    /// Warnings about the input.
    pub warnings: Vec<Diagnostic>,
    /// Remarks about the program, such as loops that are not unrolled.
    pub notes: Vec<Diagnostic>,
}

/// The input of the lowering.
pub(super) struct Request<'s> {
    pub(super) tensors: &'s [TensorData],
    pub(super) schedule: &'s ScheduleData,
    pub(super) params: &'s [Param],
    pub(super) name: String,
}

/// A parameter of a lowered function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Param {
    /// The memory of an input or an output.
    Tensor(Tensor),
    /// A symbolic extent that is passed as a scalar.
    Scalar(Var),
}

impl From<Tensor> for Param {
    fn from(tensor: Tensor) -> Self {
        Self::Tensor(tensor)
    }
}

impl From<&Var> for Param {
    fn from(var: &Var) -> Self {
        Self::Scalar(var.clone())
    }
}

/// The largest number of stages. Their allocations are nested, and a program that is printed has to be read back; the
/// rest of [`MAX_SCOPES`] is for what is declared inside the last stage.
const MAX_STAGES: usize = MAX_SCOPES - 24;

/// Lowers a schedule to a function, with the evidence that it computes the definition.
///
/// # Errors
/// The first problem of the schedule, or all that validation finds in the function.
pub(super) fn lower(request: &Request<'_>) -> Result<Lowered, Vec<Diagnostic>> {
    let one = |error| vec![error];
    let n_stages = request.schedule.live_stages().count();
    if n_stages > MAX_STAGES {
        let message = format!("the schedule has {n_stages} stages, and a function at most {MAX_STAGES}");
        let error = Diagnostic::error("nesting", None, message);
        return Err(vec![error.with_help("lower it as several functions")]);
    }
    let definition = definition(request).map_err(one)?;
    let buffers = buffers(request).map_err(one)?;
    let mut lowering = Lowering { request, buffers, body: Vec::new(), evidence: LoweringEvidence::default() };
    for stage in request.schedule.live_stages() {
        lowering.stage(stage).map_err(one)?;
    }
    let written = (!request.schedule.factored.is_empty()).then(|| written(request, &definition)).transpose();
    let written = written.map_err(one)?;
    let steps = lowering.steps().map_err(one)?;
    let (mut func, evidence) = lowering.finish(&definition);
    let (unrolled, notes) = unroll::steps(&func, &steps);
    func.attrs.schedule = [steps, unrolled].concat();
    check_symbols(&func).map_err(one)?;
    tilewright_ir::validate(&func)?;
    let warnings = request.schedule.warnings.clone();
    Ok(Lowered { definition, written, func, evidence, warnings, notes })
}

/// Returns the definition: the parameters, and every computed tensor of the schedule. Caches only copy, so they are left
/// out.
fn definition(request: &Request<'_>) -> Built<Definition> {
    let Request { tensors, schedule, params, .. } = request;
    let param_tensors: Vec<usize> = params
        .iter()
        .filter_map(|param| if let Param::Tensor(tensor) = param { Some(tensor.index) } else { None })
        .collect();
    let missing = |tensor: usize, what: &str| {
        let buffer = &tensors[tensor].buffer;
        let error = Diagnostic::error("parameters", None, format!("`{buffer}` is {what}, but no parameter"));
        defined_here(error, &tensors[tensor]).with_help("add it to the list of arguments")
    };
    let mut stages = Vec::new();
    for stage in &schedule.stages {
        let tensor = stage.tensor;
        if schedule.inlined.contains(&tensor) {
            continue;
        }
        match &tensors[tensor].kind {
            TensorKind::Computed { axes, .. } => {
                if schedule.outputs.contains(&tensor) && !param_tensors.contains(&tensor) {
                    return Err(missing(tensor, "an output"));
                }
                let buffer = tensors[tensor].buffer.clone();
                let body = effective_body(tensors, schedule, tensor)?;
                stages.push(tilewright_ir::Stage { buffer, axes: axes.clone(), body });
            }
            TensorKind::Input if !param_tensors.contains(&tensor) => return Err(missing(tensor, "an input")),
            TensorKind::Input | TensorKind::Cache { .. } => {}
        }
    }
    // A parameter of another schedule would be passed in and never written; a cache has no value in the definition.
    for &tensor in &param_tensors {
        let computed = schedule.live_stages().any(|stage| stage.tensor == tensor);
        let outside = !matches!(tensors[tensor].kind, TensorKind::Input) && !computed;
        if outside || matches!(tensors[tensor].kind, TensorKind::Cache { .. }) {
            let message = format!("the schedule does not compute the parameter `{}`", tensors[tensor].buffer);
            return Err(defined_here(Diagnostic::error("parameters", None, message), &tensors[tensor]));
        }
    }
    let params = param_tensors.iter().map(|&tensor| tensors[tensor].buffer.clone()).collect();
    Ok(Definition { name: request.name.clone(), params, stages })
}

/// Returns the definition without the parts of reductions that are computed in two stages.
fn written(request: &Request<'_>, definition: &Definition) -> Built<Definition> {
    let Request { tensors, schedule, .. } = request;
    let mut stages = Vec::new();
    for stage in &definition.stages {
        let tensor = tensors.iter().position(|tensor| tensor.buffer == stage.buffer);
        let Some(tensor) = tensor.filter(|tensor| schedule.factored.iter().all(|factored| factored.parts != *tensor))
        else {
            continue;
        };
        stages.push(tilewright_ir::Stage { body: written_body(tensors, schedule, tensor)?, ..stage.clone() });
    }
    Ok(Definition { stages, ..definition.clone() })
}

/// The error with a label at the definition of a tensor.
fn defined_here(error: Diagnostic, tensor: &TensorData) -> Diagnostic {
    tensor.place.map_or(error.clone(), |place| error.with_label(place, "defined here"))
}

/// Returns the buffer of the program for every tensor, with the scope of its stage and the separators of its final layout.
///
/// A tensor whose scope and separators are those it was defined with keeps its buffer, so that messages about the program
/// point to its definition.
fn buffers(request: &Request<'_>) -> Built<HashMap<usize, Buffer>> {
    let mut buffers = HashMap::new();
    let mut names: Vec<String> = Vec::new();
    // A parameter that the schedule does not use has no stage, but it is part of the signature.
    for param in request.params {
        if let Param::Tensor(tensor) = param
            && request.schedule.position(tensor.index).is_none()
        {
            let buffer = unique(&request.tensors[tensor.index].buffer, &mut names);
            buffers.insert(tensor.index, buffer);
        }
    }
    for stage in request.schedule.live_stages() {
        let buffer = &request.tensors[stage.tensor].buffer;
        let rank = stage.layouts.last().map_or(buffer.rank(), |map| map.outputs().len());
        // A tiled layout is applied after the index maps, so its physical axes are the final ones.
        let rank = stage.tiled.as_ref().map_or(rank, TileRequest::physical_rank);
        let separators = stage.separators.clone().unwrap_or_else(|| AxisSeparators::none(rank));
        let same = buffer.scope == stage.scope && buffer.axis_separators == separators;
        let buffer = if same {
            buffer.clone()
        } else {
            buffer.with(|info| {
                info.scope = stage.scope;
                info.axis_separators = separators;
            })
        };
        let buffer = unique(&buffer, &mut names);
        if stage.scope != tilewright_ir::Scope::Global && request.schedule.outputs.contains(&stage.tensor) {
            check_output_scope(&buffer)?;
        }
        buffers.insert(stage.tensor, buffer);
    }
    Ok(buffers)
}

/// Returns the buffer under a name that is not in `names`, and adds the name: the same buffer if its own name is free.
fn unique(buffer: &Buffer, names: &mut Vec<String>) -> Buffer {
    let mut name = buffer.name.clone();
    let mut count = 0;
    while names.contains(&name) {
        count += 1;
        name = format!("{}_{count}", buffer.name);
    }
    names.push(name.clone());
    if name == buffer.name { buffer.clone() } else { buffer.with(|info| info.name = name) }
}

/// Refuses an output in memory of a group or a thread, which a caller cannot pass in.
fn check_output_scope(buffer: &Buffer) -> Built<()> {
    use tilewright_ir::Scope;
    if matches!(buffer.scope, Scope::Shared | Scope::Local) {
        let message = format!("the parameter `{buffer}` cannot live in {} memory", buffer.scope);
        return Err(Diagnostic::error("scope", buffer.span, message)
            .with_help("use cache_write, and set the scope of the cache"));
    }
    Ok(())
}

/// The program under construction.
struct Lowering<'s> {
    request: &'s Request<'s>,
    buffers: HashMap<usize, Buffer>,
    body: Vec<Stmt>,
    evidence: LoweringEvidence,
}

impl Lowering<'_> {
    /// The buffer that holds a tensor in the program.
    fn buffer(&self, tensor: usize) -> &Buffer {
        self.buffers.get(&tensor).unwrap_or(&self.request.tensors[tensor].buffer)
    }

    /// The tensor of the definition whose values a tensor holds.
    fn base(&self, tensor: usize) -> usize {
        if let TensorKind::Cache { base } = self.request.tensors[tensor].kind { base } else { tensor }
    }

    /// Where the tensor of a stage was defined, if the schedule was read from text.
    fn span_of(&self, stage: &StageData) -> Option<Span> {
        self.request.tensors[stage.tensor].place
    }

    /// Adds the nest of a stage. If its loops are made again where it is computed, they are those of the definition here.
    fn stage(&mut self, stage: &StageData) -> Built<()> {
        let original;
        let stage = if attach::is_recreated(stage) {
            attach::check(stage, self.buffer(stage.tensor))?;
            original = attach::original(stage);
            &original
        } else {
            stage
        };
        let place = self.request.tensors[stage.tensor].place;
        let body = match stage.work {
            Work::Input => return Ok(()),
            Work::Copy(source) => self.copy(stage, source)?,
            Work::Compute(computed) => {
                let TensorKind::Computed { axes, .. } = &self.request.tensors[computed].kind else {
                    unreachable!("only computed tensors have a definition")
                };
                let axis_vars: Vec<Var> = axes.iter().map(|axis| axis.var.clone()).collect();
                match &effective_body(self.request.tensors, self.request.schedule, computed)? {
                    StageBody::Elementwise(value) => self.elementwise(stage, axis_vars, value)?,
                    StageBody::Reduce { init: Some(_), .. } | StageBody::Reduce { condition: Some(_), .. } => {
                        let message = "a reduction with a start value or a condition cannot be scheduled";
                        return Err(Diagnostic::error("reduction", None, message));
                    }
                    StageBody::Reduce { op, axes, source, .. } => {
                        let reduced = axes.iter().map(|axis| axis.var.clone()).collect();
                        self.reduce(stage, &axis_vars, reduced, *op, source)?
                    }
                }
            }
        };
        self.body.push(body.at(place));
        Ok(())
    }

    /// Records as evidence for the judge which element a store computes, and the inverse from the element to the loops.
    fn claim(&mut self, stage: &StageData, role: StoreRole, site: &Site, axis_vars: Vec<Var>) {
        let tensor = self.request.tensors[self.base(stage.tensor)].buffer.clone();
        let (axes, inverse) = (site.axes.clone(), site.inverse.clone());
        self.evidence.stores.push(StoreClaim { tensor, role, axis_vars, axes, inverse });
    }

    /// The nest of a cache or of a tensor that has one: copies element by element.
    fn copy(&mut self, stage: &StageData, source: usize) -> Built<Stmt> {
        let axis_vars: Vec<Var> = stage.roots.iter().filter_map(|&root| stage.loops[root].axis.clone()).collect();
        let nest = Nest::new(stage)?;
        let site = nest.all(&axis_vars);
        let value = Expr::load(self.buffer(source), site.axes.clone());
        let store = Stmt::store(self.buffer(stage.tensor), site.axes.clone(), value).at(self.span_of(stage));
        self.claim(stage, StoreRole::Copy, &site, axis_vars);
        Ok(nest.wrap(site.guarded(store), 0, &site))
    }

    /// The nest of a tensor without a reduction.
    fn elementwise(&mut self, stage: &StageData, axis_vars: Vec<Var>, value: &Expr) -> Built<Stmt> {
        let nest = Nest::new(stage)?;
        let site = nest.all(&axis_vars);
        let value = self.value(stage, &site, &axis_vars, value);
        let store = Stmt::store(self.buffer(stage.tensor), site.axes.clone(), value).at(self.span_of(stage));
        self.claim(stage, StoreRole::Compute, &site, axis_vars);
        Ok(nest.wrap(site.guarded(store), 0, &site))
    }

    /// Returns the nests of a reduction: one stores the identity in each element, one combines; both are inside the loops
    /// that they share.
    fn reduce(
        &mut self,
        stage: &StageData,
        axis_vars: &[Var],
        reduced: Vec<Var>,
        op: tilewright_ir::ReduceOp,
        source: &Expr,
    ) -> Built<Stmt> {
        let nest = Nest::new(stage)?;
        // The identity is stored once per element, before the first reduced loop starts; below it, each iteration combines.
        let shared = nest.first_reduction();
        let target = self.buffer(stage.tensor).clone();
        let start = nest.spatial(axis_vars);
        let init =
            Stmt::store(&target, start.axes.clone(), op.identity_expr(target.dtype.scalar)).at(self.span_of(stage));
        let init = nest.wrap(start.guarded(init), shared, &start);
        self.claim(stage, StoreRole::Init, &start, axis_vars.to_vec());

        let all_vars: Vec<Var> = axis_vars.iter().cloned().chain(reduced).collect();
        let site = nest.all(&all_vars);
        let indices = site.axes[..axis_vars.len()].to_vec();
        let value = self.value(stage, &site, &all_vars, source);
        let combined = Expr::binary(op.combine(), Expr::load(&target, indices.clone()), value);
        let update =
            nest.wrap(site.guarded(Stmt::store(&target, indices, combined).at(self.span_of(stage))), shared, &site);
        self.claim(stage, StoreRole::Update, &site, all_vars);
        Ok(nest.wrap_shared(Stmt::seq(vec![init, update]), shared, &site))
    }

    /// Returns the value of an element at a site: axes are replaced by their values there, tensors by the buffers that hold
    /// them for this stage, and indices are simplified.
    fn value(&self, stage: &StageData, site: &Site, axis_vars: &[Var], value: &Expr) -> Expr {
        let tensors = self.request.tensors;
        site.value(axis_vars, value, |buffer| {
            let tensor = tensors.iter().position(|tensor| tensor.buffer == *buffer);
            tensor.map_or_else(|| buffer.clone(), |tensor| self.buffer(stage.holder(tensor)).clone())
        })
    }

    /// Returns the steps that move stages into loops of others, readers first, those that double their memory, and those that bind
    /// reduced loops to threads.
    fn steps(&self) -> Built<Vec<ScheduleStep>> {
        let stages = || self.request.schedule.live_stages().rev();
        let mut steps: Vec<ScheduleStep> = Vec::new();
        for stage in stages() {
            let Some(attached) = stage.attached else { continue };
            steps.push(self.attached(stage, attached)?);
            if attach::is_recreated(stage) {
                steps.extend(attach::steps(stage, &self.buffer(stage.tensor).name));
            }
        }
        let doubled = stages().filter(|stage| stage.is_doubled);
        steps.extend(doubled.map(|stage| {
            let argument = self.buffer(stage.tensor).name.clone();
            ScheduleStep { primitive: "double_buffer".to_owned(), argument, span: None }
        }));
        steps.extend(stages().flat_map(|stage| self.reduced_at_once(stage)));
        Ok(steps)
    }

    /// The steps that bind reduced loops of a stage to threads.
    fn reduced_at_once(&self, stage: &StageData) -> Vec<ScheduleStep> {
        let step = |&leaf: &usize| {
            let run = &stage.loops[leaf];
            let ForKind::ThreadBinding(tag) = run.kind else { return None };
            let argument = format!("{}.{}:{tag}", self.buffer(stage.tensor), run.name);
            run.reduce.then(|| ScheduleStep { primitive: "allreduce".to_owned(), argument, span: run.kind_place })
        };
        stage.leaves.iter().filter_map(step).collect()
    }

    /// The step that computes a stage in a loop of another one.
    fn attached(&self, stage: &StageData, Attached { tensor, index, place }: Attached) -> Built<ScheduleStep> {
        let buffer = self.buffer(stage.tensor);
        let live = self.request.schedule.live_stages().find(|parent| parent.tensor == tensor);
        let wrong = |message: String, help: &str| Diagnostic::error("compute-at", place, message).with_help(help);
        let parent = live.ok_or_else(|| {
            let message = format!("`{buffer}` is computed in a loop of a tensor that is inlined");
            wrong(message, "name a loop of a stage that has loops")
        })?;
        parent.leaf(index).map_err(|fault| Diagnostic { labels: wrong(String::new(), "").labels, ..fault })?;
        let argument = format!("{buffer}:{}.{}", self.buffer(tensor), parent.loops[index].name);
        Ok(ScheduleStep { primitive: "compute_at".to_owned(), argument, span: place })
    }

    /// Returns the function, with parameters in the given order, allocations around the nests for all other tensors, and
    /// layouts as attributes.
    fn finish(mut self, definition: &Definition) -> (PrimFunc, LoweringEvidence) {
        let request = self.request;
        let (mut params, mut buffer_map, mut in_params) = (Vec::new(), Vec::new(), Vec::new());
        for param in request.params {
            match param {
                Param::Scalar(var) => params.push(var.clone()),
                Param::Tensor(tensor) => {
                    let buffer = self.buffer(tensor.index).clone();
                    let handle = Var::new(buffer.name.as_str(), DataType::HANDLE);
                    params.push(handle.clone());
                    buffer_map.push((handle, buffer));
                    in_params.push(tensor.index);
                }
            }
        }
        let mut attrs = FuncAttrs::default();
        let mut body = Stmt::seq(std::mem::take(&mut self.body));
        let mut holders = Vec::new();
        for &tensor in &in_params {
            holders.push((tensor, self.buffer(tensor).clone()));
        }
        // Each allocation wraps the body so far, so the reverse order makes the first stage's allocation the outermost.
        for stage in request.schedule.live_stages().rev() {
            if !in_params.contains(&stage.tensor) {
                let buffer = self.buffer(stage.tensor).clone();
                holders.push((stage.tensor, buffer.clone()));
                body = Stmt::new(StmtKind::Allocate { buffer, body: Arc::new(body) });
            }
        }
        // Layouts are keyed by the data variable: the passes replace buffers, but not the memory that they refer to.
        for stage in request.schedule.live_stages() {
            if !stage.layouts.is_empty() {
                let data = self.buffer(stage.tensor).data.clone();
                attrs.layout_transform_map.push((data, stage.layouts.clone()));
            }
            if let Some(span) = stage.layout_span {
                attrs.layout_spans.push((self.buffer(stage.tensor).data.clone(), span));
            }
            if let Some(request) = &stage.tiled {
                attrs.tile_layout.push((self.buffer(stage.tensor).data.clone(), request.clone()));
            }
        }
        attrs.other.push(("global_symbol".to_owned(), AttrValue::Str(definition.name.clone())));
        self.evidence.holders = holders
            .into_iter()
            .map(|(tensor, buffer)| Holder { tensor: request.tensors[self.base(tensor)].buffer.clone(), buffer })
            .collect();
        let func = PrimFunc { name: definition.name.clone(), params, buffer_map, attrs, body };
        (func, self.evidence)
    }
}

/// Checks that every symbolic extent is bound by the shape of an argument, or is an argument.
fn check_symbols(func: &PrimFunc) -> Built<()> {
    let mut known = func.symbols();
    known.extend(func.params.iter().cloned());
    let mut missing: Option<Var> = None;
    // The first one in the order of the program is reported, so that the message is the same in every run.
    let mut look = |expr: &Expr, bound: &[Var]| {
        for var in expr.vars() {
            if missing.is_none() && !known.contains(&var) && !bound.contains(&var) {
                missing = Some(var);
            }
        }
    };
    for buffer in func.buffers() {
        buffer.shape.iter().for_each(|extent| look(extent, &[]));
    }
    let mut bound = Vec::new();
    func.body.walk(&mut |stmt| {
        if let StmtKind::For(inner) = &stmt.kind {
            bound.push(inner.var.clone());
        }
        stmt.exprs().for_each(|expr| look(expr, &bound));
    });
    let Some(symbol) = missing else { return Ok(()) };
    let message = format!("the symbolic extent `{symbol}` is in the shape of no parameter");
    Err(Diagnostic::error("unbound-extent", None, message)
        .with_help(format!("add `{symbol}` to the arguments of tvm.lower")))
}
