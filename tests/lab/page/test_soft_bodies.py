import numpy as np

from tests.viewer.test_deformables import FLEXES

SOFT = FLEXES.replace(
    "</worldbody>",
    """<flexcomp name="cube" type="grid" dim="3" count="3 3 3" spacing=".1 .1 .1" pos="1 0 1"
      radius=".01"><edge equality="true"/></flexcomp>
    <geom name="floor" type="plane" size="3 3 .1"/></worldbody>""",
)


def test_flexes_are_drawn_live(open_page):
    """Let a rope, a cloth and soft cubes fall: the page draws the vertices that MuJoCo computes.

    They go on after a rebuild, with which a prop is added.
    """
    page = open_page(SOFT, mode="direct")
    lab = page.lab
    lab.start()
    for _ in range(2):
        before = lab.snapshot.xpos.copy()
        lab.step(30)
        page.update()
        grid = page.context.view.grid
        grid.deformables._due = 0.0
        page.update()
        points = lab.loop.do(lambda model, data: data.flexvert_xpos.copy())
        np.testing.assert_array_equal(grid.deformables.bodies.points, points)
        bodies = grid.deformables.bodies
        drawn = [np.asarray(handle.vertices) for handle in grid.deformables.handles]
        wanted = [bodies.flex[piece.vertices] for piece in bodies.pieces]
        assert len(drawn) == len(wanted) >= 3 and len(bodies.cables) == 1
        for vertices, expected in zip(drawn, wanted, strict=True):
            np.testing.assert_array_equal(vertices, expected)
        assert np.abs(lab.snapshot.xpos[1:] - before[1:]).max() > 1e-3
        lab.call("add_prop", shape="box", size=[0.1] * 3, pos=[0, 0, 3], name="crate")
