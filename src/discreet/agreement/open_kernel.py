"""The kernel of a plan that names none, and which features follow from a kernel."""

import itertools

from discreet.agreement import resolve
from discreet.agreement.index_reports import tells_more
from discreet.domain.box import Categorical
from discreet.features.kernels import Additive, Kernel, Learned, Structured
from discreet.features.products import ProductFeatures
from discreet.features.simple_kernels import Linear, Polynomial, SquaredExponential
from discreet.privacy.budget import JointDP, LocalDP
from discreet.privacy.shuffled import ShuffledDP

#: Where the kernel is open, features of several structures at once: over the whole box, and under
#: contexts, where each costs more.
MOST_STRUCTURED, MOST_PERSONAL = 160, 64
#: Over the whole box structures are weighed for so many coordinates; beyond, f is taken for a sum.
MOST_TOGETHER = 8
#: Encodings for which leading features are the default.
DIRECTED = ("auto", "directed", "codebook")
#: Grids are tried for so many columns that go together.
MOST_GRIDDED = 4
#: So many of them: noise lets nobody learn more.
MOST_LEADING = 48


def kernel_of(plan: resolve.Arguments, *, fill: bool) -> Kernel:
    """Where the author names none: structures that the releases weigh.

    What rests on one kernel has an ordinary one; so has a map of features that is given.
    """
    kernel = plan.kernel
    if not fill or not isinstance(kernel, Structured):
        return kernel
    if isinstance(plan.features, ProductFeatures):  # resolved before: a plan that is copied
        return kernel
    # What candidates are like is known to nobody, and there a grid was no worse (decision 27).
    on_grid = plan.encoding == "fourier" or plan.decisions == "candidates"
    on_grid = on_grid or plan.features not in ("auto", "leading")
    if on_grid or needs_error(plan) or isinstance(plan.privacy, LocalDP | ShuffledDP):
        return SquaredExponential()
    domain = plan.domain
    if plan.decisions == "box" and len(domain.names) > MOST_TOGETHER:
        return Learned(additive=True)
    is_name = [isinstance(domain.coordinate(name), Categorical) for name in domain.names]
    categories = tuple(itertools.compress(map(domain.columns, domain.names), is_name))
    contexts = tuple(map(domain.columns, domain.context))
    return Structured(categories, contexts or None, True if len(contexts) > 1 else None)


def most_leading(plan: resolve.Arguments) -> int:
    """How many features there are at most, where they are the leading ones."""
    if not isinstance(plan.kernel, Structured):
        return MOST_LEADING
    return MOST_PERSONAL if plan.kernel.contexts else MOST_STRUCTURED


def needs_error(plan: resolve.Arguments) -> bool:
    """Whether a theorem rests on the features' uniform error."""
    return plan.noise not in (None, "independent") or plan.confidence == "theory"


def needs_leading(plan: resolve.Arguments) -> bool:
    """Whether the default features are the leading ones.

    For private choices of private options, and where a grid would be far too large to look for.
    """
    if needs_error(plan):
        return False
    if isinstance(plan.kernel, Structured):
        return True
    joint = isinstance(plan.privacy, JointDP) and plan.privacy.protect == "decisions"
    alone = tells_more(plan.privacy, box=False)
    people = plan.decisions == "context" and plan.encoding in DIRECTED
    together = _together(plan.kernel, plan.domain.dimension)
    return (people and (joint or alone)) or together > MOST_GRIDDED


def _together(kernel: Kernel, dimension: int) -> int:
    """How many columns a grid of features would have to fill at once."""
    if isinstance(kernel, Additive):
        return max(_together(part.kernel, len(part.places)) for part in kernel.parts)
    exact = isinstance(kernel, Linear | Polynomial)
    return 1 if exact or (isinstance(kernel, Learned) and kernel.additive) else dimension
