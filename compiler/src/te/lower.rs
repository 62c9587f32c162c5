//! From a schedule to a program: a nest for each stage at the root, in the order of the stages.
//!
//! ```python
//! B = te.compute((7,), lambda i: A[i] + 1)      for i_outer in range(2):
//! s[B].split(B.op.axis[0], 4)                       for i_inner in range(4):
//!                                                       if i_outer * 4 + i_inner < 7:
//!                                                           B[i_outer * 4 + i_inner] = A[i_outer * 4 + i_inner] + 1
//! ```
//!
//! A reduction shares its loops up to the first reduced one; inside, one nest starts every element from the identity, and
//! a second one combines. Layouts are recorded in `layout_transform_map`, for `apply_buffer_transforms` to apply; the
//! loops run over the layout already.

use std::collections::HashMap;

use tilewright_ir::{
    AttrValue, AxisSeparators, Buffer, DataType, Definition, Diagnostic, Expr, FuncAttrs, Holder, LoweringEvidence,
    PrimFunc, Span, StageBody, Stmt, StmtKind, StoreClaim, StoreRole, TileRequest, Var,
};

use super::inline::effective_body;
use super::nest::{Nest, Site};
use super::schedule::{Schedule, Stage, Work};
use super::value::{Eval, Tensor, TensorKind};

/// A schedule, lowered.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// What is computed, without the schedule: caches are not in it.
    pub definition: Definition,
    /// The program: one nest a stage, layouts recorded as attributes.
    pub func: PrimFunc,
    /// Which loops compute which tensor.
    pub evidence: LoweringEvidence,
    /// What should be known about the input.
    pub warnings: Vec<Diagnostic>,
}

/// What is lowered.
pub(super) struct Request<'s> {
    pub(super) tensors: &'s [Tensor],
    pub(super) schedule: &'s Schedule,
    pub(super) params: &'s [Param],
    pub(super) name: String,
    /// The lower call, or what stands for it.
    pub(super) span: Span,
}

/// A parameter of the function.
pub(super) enum Param {
    Tensor(usize),
    Scalar(Var),
}

/// Lowers; on failure everything that is wrong.
pub(super) fn lower(request: &Request<'_>) -> Result<Lowered, Vec<Diagnostic>> {
    let one = |error| vec![error];
    let definition = definition(request).map_err(one)?;
    let buffers = buffers(request).map_err(one)?;
    let mut program = Program { request, buffers, body: Vec::new(), evidence: LoweringEvidence::default() };
    for stage in request.schedule.live_stages() {
        program.stage(stage).map_err(one)?;
    }
    let (func, evidence) = program.finish(&definition);
    check_symbols(request, &func).map_err(one)?;
    tilewright_ir::validate(&func)?;
    Ok(Lowered { definition, func, evidence, warnings: Vec::new() })
}

/// The definition: the parameters, and every computed tensor of the schedule.
fn definition(request: &Request<'_>) -> Eval<Definition> {
    let Request { tensors, schedule, params, .. } = request;
    let param_tensors: Vec<usize> = params
        .iter()
        .filter_map(|param| if let Param::Tensor(tensor) = param { Some(*tensor) } else { None })
        .collect();
    let missing = |tensor: usize, what: &str| {
        let buffer = &tensors[tensor].buffer;
        Diagnostic::error("parameters", Some(request.span), format!("`{buffer}` is {what}, but no parameter"))
            .with_label(tensors[tensor].span, "defined here")
            .with_help("add it to the list of arguments")
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
    for &tensor in &param_tensors {
        let computed = schedule.live_stages().any(|stage| stage.tensor == tensor);
        let outside = !matches!(tensors[tensor].kind, TensorKind::Input) && !computed;
        if outside || matches!(tensors[tensor].kind, TensorKind::Cache { .. }) {
            let message = format!("the schedule does not compute the parameter `{}`", tensors[tensor].buffer);
            return Err(Diagnostic::error("parameters", Some(request.span), message)
                .with_label(tensors[tensor].span, "defined here"));
        }
    }
    let params = param_tensors.iter().map(|&tensor| tensors[tensor].buffer.clone()).collect();
    Ok(Definition { name: request.name.clone(), params, stages })
}

/// The buffer of the program for every tensor: with its scope, and the separators of its final layout.
fn buffers(request: &Request<'_>) -> Eval<HashMap<usize, Buffer>> {
    let mut buffers = HashMap::new();
    let mut names: Vec<String> = Vec::new();
    for param in request.params {
        if let Param::Tensor(tensor) = param
            && request.schedule.position(*tensor).is_none()
        {
            let buffer = unique(&request.tensors[*tensor].buffer, &mut names);
            buffers.insert(*tensor, buffer);
        }
    }
    for stage in request.schedule.live_stages() {
        let buffer = &request.tensors[stage.tensor].buffer;
        let rank = stage.layouts.last().map_or(buffer.rank(), |map| map.outputs().len());
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
            check_output_scope(request, &buffer)?;
        }
        buffers.insert(stage.tensor, buffer);
    }
    Ok(buffers)
}

/// The buffer under a name that no other has; the same buffer if its name is free.
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

/// Memory of a group or a thread cannot be passed in.
fn check_output_scope(request: &Request<'_>, buffer: &Buffer) -> Eval<()> {
    use tilewright_ir::Scope;
    if matches!(buffer.scope, Scope::Shared | Scope::Local) {
        let message = format!("the parameter `{buffer}` cannot live in {} memory", buffer.scope);
        return Err(Diagnostic::error("scope", buffer.span.or(Some(request.span)), message)
            .with_help("use cache_write, and set the scope of the cache"));
    }
    Ok(())
}

/// The program under construction.
struct Program<'s> {
    request: &'s Request<'s>,
    buffers: HashMap<usize, Buffer>,
    body: Vec<Stmt>,
    evidence: LoweringEvidence,
}

impl Program<'_> {
    fn buffer(&self, tensor: usize) -> &Buffer {
        self.buffers.get(&tensor).unwrap_or(&self.request.tensors[tensor].buffer)
    }

    /// The tensor of the definition whose values a tensor holds.
    fn base(&self, tensor: usize) -> usize {
        if let TensorKind::Cache { of } = self.request.tensors[tensor].kind { of } else { tensor }
    }

    /// Where the tensor of a stage was defined.
    fn span_of(&self, stage: &Stage) -> Option<Span> {
        Some(self.request.tensors[stage.tensor].span)
    }

    fn stage(&mut self, stage: &Stage) -> Eval<()> {
        let span = self.request.tensors[stage.tensor].span;
        let body = match stage.work {
            Work::Input => return Ok(()),
            Work::Copy(source) => self.copy(stage, source)?,
            Work::Compute(of) => {
                let TensorKind::Computed { axes, .. } = &self.request.tensors[of].kind else {
                    unreachable!("only computed tensors have a definition")
                };
                let axis_vars: Vec<Var> = axes.iter().map(|axis| axis.var.clone()).collect();
                match &effective_body(self.request.tensors, self.request.schedule, of)? {
                    StageBody::Elementwise(value) => self.elementwise(stage, axis_vars, value)?,
                    StageBody::Reduce { op, axes, source } => {
                        let reduced = axes.iter().map(|axis| axis.var.clone()).collect();
                        self.reduce(stage, &axis_vars, reduced, *op, source)?
                    }
                }
            }
        };
        self.body.push(body.at(Some(span)));
        Ok(())
    }

    fn claim(&mut self, stage: &Stage, role: StoreRole, site: &Site, axis_vars: Vec<Var>) {
        let tensor = self.request.tensors[self.base(stage.tensor)].buffer.clone();
        let (axes, inverse) = (site.axes.clone(), site.inverse.clone());
        self.evidence.stores.push(StoreClaim { tensor, role, axis_vars, axes, inverse });
    }

    fn copy(&mut self, stage: &Stage, source: usize) -> Eval<Stmt> {
        let axis_vars: Vec<Var> = stage.roots.iter().filter_map(|&root| stage.loops[root].axis.clone()).collect();
        let nest = Nest::new(stage)?;
        let site = nest.all(&axis_vars);
        let value = Expr::load(self.buffer(source), site.axes.clone());
        let store = Stmt::store(self.buffer(stage.tensor), site.axes.clone(), value).at(self.span_of(stage));
        self.claim(stage, StoreRole::Copy, &site, axis_vars);
        Ok(nest.wrap(site.guarded(store), 0, &site))
    }

    fn elementwise(&mut self, stage: &Stage, axis_vars: Vec<Var>, value: &Expr) -> Eval<Stmt> {
        let nest = Nest::new(stage)?;
        let site = nest.all(&axis_vars);
        let value = self.value(stage, &site, &axis_vars, value);
        let store = Stmt::store(self.buffer(stage.tensor), site.axes.clone(), value).at(self.span_of(stage));
        self.claim(stage, StoreRole::Compute, &site, axis_vars);
        Ok(nest.wrap(site.guarded(store), 0, &site))
    }

    fn reduce(
        &mut self,
        stage: &Stage,
        axis_vars: &[Var],
        reduced: Vec<Var>,
        op: tilewright_ir::ReduceOp,
        source: &Expr,
    ) -> Eval<Stmt> {
        let nest = Nest::new(stage)?;
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

    /// The value of an element at a place: axes replaced, tensors read from where they are held, indices simplified.
    fn value(&self, stage: &Stage, site: &Site, axis_vars: &[Var], value: &Expr) -> Expr {
        let tensors = self.request.tensors;
        site.value(axis_vars, value, |buffer| {
            let tensor = tensors.iter().position(|tensor| tensor.buffer == *buffer);
            tensor.map_or_else(|| buffer.clone(), |tensor| self.buffer(stage.holder(tensor)).clone())
        })
    }

    fn finish(mut self, definition: &Definition) -> (PrimFunc, LoweringEvidence) {
        let request = self.request;
        let (mut params, mut buffer_map, mut in_params) = (Vec::new(), Vec::new(), Vec::new());
        for param in request.params {
            match param {
                Param::Scalar(var) => params.push(var.clone()),
                Param::Tensor(tensor) => {
                    let buffer = self.buffer(*tensor).clone();
                    let handle = Var::new(buffer.name.as_str(), DataType::HANDLE);
                    params.push(handle.clone());
                    buffer_map.push((handle, buffer));
                    in_params.push(*tensor);
                }
            }
        }
        let mut attrs = FuncAttrs::default();
        let mut body = Stmt::seq(std::mem::take(&mut self.body));
        let mut holders = Vec::new();
        for &tensor in &in_params {
            holders.push((tensor, self.buffer(tensor).clone()));
        }
        for stage in request.schedule.live_stages().rev() {
            if !in_params.contains(&stage.tensor) {
                let buffer = self.buffer(stage.tensor).clone();
                holders.push((stage.tensor, buffer.clone()));
                body = Stmt::new(StmtKind::Allocate { buffer, body: Box::new(body) });
            }
        }
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

/// Every symbolic extent is bound by the shape of an argument, or is an argument.
fn check_symbols(request: &Request<'_>, func: &PrimFunc) -> Eval<()> {
    let mut known = func.symbols();
    known.extend(func.params.iter().cloned());
    let mut missing: Option<Var> = None;
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
        stmt.exprs().into_iter().for_each(|expr| look(expr, &bound));
    });
    let Some(symbol) = missing else { return Ok(()) };
    let message = format!("the symbolic extent `{symbol}` is in the shape of no parameter");
    Err(Diagnostic::error("unbound-extent", Some(request.span), message)
        .with_help(format!("add `{symbol}` to the arguments of tvm.lower")))
}
