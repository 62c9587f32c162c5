//! Barriers below conditions: the condition is written around the statements between the barriers, and not around the barriers.
//!
//! ```text
//! if block < 1:                       const int taken = block < 1;
//!     s[t] = A[t]                     if (taken) s[t] = A[t];
//!     barrier                         barrier(..);
//!     B[t] = s[7 - t]                 if (taken) B[t] = s[7 - t];
//! ```
//!
//! All work-items of a group agree on such a condition, so a barrier more changes nothing. Drivers without hardware that waits, such as PoCL,
//! copy all that follows a conditional barrier for either outcome: a dozen of them, one behind the other, are thousands of copies.
//! A loop with barriers that may have no iteration is such a condition too, and stays one: six of them take PoCL 20 s.

use tilewright_ir::sabotage;
use tilewright_ir::{DataType, Diagnostic, Expr, ScalarType, Stmt, StmtKind};

use super::code::{Code, LOGICAL_AND};
use super::writer::Writer;

impl Writer {
    /// Whether work-items wait for each other inside of a statement.
    pub(super) fn waits(&self, stmt: &Stmt) -> bool {
        let mut has_barrier = false;
        stmt.walk(&mut |stmt| has_barrier |= matches!(stmt.kind, StmtKind::Barrier));
        has_barrier || (self.launch.is_ordered && self.launch.binds_inside(stmt))
    }

    /// Writes a statement below the guard, if there is one. Statements with barriers write it around their parts.
    pub(super) fn guarded(&mut self, stmt: &Stmt) -> Result<(), Diagnostic> {
        let guard = self.guard.take_if(|_| !matches!(stmt.kind, StmtKind::Evaluate(_) | StmtKind::Assert { .. }));
        let Some(guard) = guard else { return self.plain(stmt) };
        if self.waits(stmt) {
            self.guard = Some(guard);
            return self.plain(stmt);
        }
        self.open(&format!("if ({guard})"));
        self.plain(stmt)?;
        self.close();
        self.guard = Some(guard);
        Ok(())
    }

    /// Writes a conditional statement with barriers inside; all work-items of a group agree on the condition.
    pub(super) fn guarded_branch(
        &mut self,
        cond: &Code,
        then_body: &Stmt,
        else_body: Option<&Stmt>,
    ) -> Result<(), Diagnostic> {
        let taken = self.flag("taken", &cond.within(LOGICAL_AND));
        self.below(Some(taken.clone()), |writer| writer.stmt(then_body))?;
        let Some(body) = else_body else { return Ok(()) };
        let other = if sabotage::on("kernel-drops-else") { "1".to_owned() } else { format!("!{taken}") };
        let other = self.flag("other", &other);
        self.below(Some(other), |writer| writer.stmt(body))
    }

    /// Declares a flag that says whether a condition holds at a place that is reached.
    pub(super) fn flag(&mut self, name: &str, cond: &str) -> String {
        let outer = self.guard.as_ref().map_or_else(String::new, |guard| format!("{guard} && "));
        let name = self.namer.fresh(name);
        self.line(&format!("const {} {name} = {outer}{cond};", self.dialect().value_name(ScalarType::Int32.into())));
        name
    }

    /// Writes something below another guard, or below none.
    pub(super) fn below(
        &mut self,
        guard: Option<String>,
        write: impl FnOnce(&mut Self) -> Result<(), Diagnostic>,
    ) -> Result<(), Diagnostic> {
        let outer = std::mem::replace(&mut self.guard, guard);
        write(self)?;
        self.guard = outer;
        Ok(())
    }

    /// Declares a name with its value, which is computed only if the place is reached.
    pub(super) fn define(&mut self, name: &str, ty: DataType, value: &str) {
        let ty = self.dialect().value_name(ty);
        match &self.guard {
            None => self.line(&format!("const {ty} {name} = {value};")),
            Some(guard) => {
                let text = format!("if ({guard}) {name} = {value};");
                self.line(&format!("{ty} {name};"));
                self.line(&text);
            }
        }
    }

    /// Where a loop begins and the condition under which it goes on: below a guard it does not run at all.
    pub(super) fn header(&self, min: &Code, is_constant: bool, name: &str, end: &str) -> (String, String) {
        match &self.guard {
            None => (min.text.clone(), format!("{name} < {end}")),
            Some(guard) if is_constant => (min.text.clone(), format!("{guard} && {name} < {end}")),
            Some(guard) => (format!("{guard} ? {} : 0", min.text), format!("{guard} && {name} < {end}")),
        }
    }

    /// Whether a condition is one that all work-items of a group agree on.
    pub(super) fn is_uniform(&self, cond: &Expr) -> bool {
        !self.divergent && !self.may_diverge(cond)
    }
}
