"""`optimality_gap`: how far each arm's normalised scores stay below 100 % on average."""

from backend.drawing.panels import Frame
from backend.drawing.profiles import gaps_figure
from backend.experiments.figures.kind import Kind, StudyDrawing
from backend.experiments.figures.kinds.profile import describe_profiles, needs_scores, profiles_of
from backend.experiments.figures.runs import FigureRuns


def _draw(runs: FigureRuns, loaded: None, frame: Frame) -> StudyDrawing:
    across = profiles_of(runs)
    return describe_profiles(runs, across, gaps_figure(across.arms, frame=frame))


OPTIMALITY_GAP = Kind("optimality_gap", shape="bars", draw=_draw, problems=needs_scores)
