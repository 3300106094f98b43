"""Datasets of episodes as Parquet files, in the layout of a LeRobot dataset of version 3."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manyworlds.utils.config import Plain
from manyworlds.utils.extras import require_extra
from manyworlds.utils.files import check_writable
from manyworlds.utils.platforms import replace_path

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_FILE = "chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_DATA = f"data/{_FILE}"
_EPISODES = f"meta/episodes/{_FILE}"
_FILES_OF_CHUNK = 1000
_DATA_MB = 100
_QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}


class EpisodeDatasetWriter:
    """Writer of a dataset, whose folder appears as a whole when it is closed.

    Args:
        folder: folder to make; it must not exist.
        fps: frames per second [Hz].
        task: what the episodes show, in words.
        names: names of the elements of each feature that is a vector, such as "action".
        robot: name of the robot.

    Raises:
        FileExistsError: the folder exists.
        OSError: it cannot be written.
        MissingExtraError: pyarrow is not installed.
    """

    def __init__(
        self,
        folder: str | Path,
        fps: float,
        task: str,
        names: Mapping[str, list[str]],
        robot: str | None = None,
    ) -> None:
        require_extra("pyarrow.parquet", "data")
        self.folder = Path(folder)
        if self.folder.exists():
            raise FileExistsError(
                f"'{self.folder}' exists: give the dataset another folder, or delete this one."
            )
        check_writable(self.folder)
        self._aside = self.folder.with_name(f".{self.folder.name}.unfinished")
        shutil.rmtree(self._aside, ignore_errors=True)
        self._fps = fps
        self._task = task
        self._robot = robot
        self._names: dict[str, list[Plain]] = {key: [*each] for key, each in names.items()}
        self._features: dict[str, Plain] = {}
        self._episodes: list[dict[str, Plain]] = []
        self._histograms: dict[str, np.ndarray] = {}
        self._frames = 0
        self._file = 0
        self._writer: pq.ParquetWriter | None = None

    @property
    def num_episodes(self) -> int:
        """Number of episodes written."""
        return len(self._episodes)

    def add_episode(self, columns: Mapping[str, np.ndarray]) -> None:
        """Add an episode.

        Args:
            columns: values by feature, each of shape [frames] or [frames, size], or images as uint8
                of shape [frames, height, width, channels] with 1 or 3 channels; the same features
                and sizes in all episodes.

        Raises:
            ValueError: features or sizes differ from those of other episodes, or an array has
                another shape.
        """
        frames = len(next(iter(columns.values())))
        # LeRobot reads features of one element as numbers.
        rows: dict[str, np.ndarray] = {}
        for key, value in columns.items():
            if value.ndim == 2 and value.shape[1] == 1:
                value = value[:, 0]
            rows[key] = value
        steps = np.arange(frames, dtype=np.int64)
        rows["timestamp"] = (steps / self._fps).astype(np.float32)
        rows["frame_index"] = steps
        rows["index"] = steps + self._frames
        rows["episode_index"] = np.full(frames, self.num_episodes)
        rows["task_index"] = np.zeros(frames, np.int64)
        features = {key: self._feature(key, value) for key, value in rows.items()}
        if self._episodes and features != self._features:
            raise ValueError(
                f"Episode {self.num_episodes} has the features {features}, but those before it "
                f"have {self._features}: all episodes need the same."
            )
        self._features = features
        self._write_rows(_table(rows))
        episode: dict[str, Plain] = {
            "episode_index": self.num_episodes,
            "tasks": [self._task],
            "length": frames,
            **self._place("data", self._file),
            "dataset_from_index": self._frames,
            "dataset_to_index": self._frames + frames,
            **self._place("meta/episodes", 0),
        }
        for key, column in rows.items():
            if column.ndim == 4:
                # Pictures of a whole dataset do not fit into memory, but their histogram does.
                histogram = _histogram(column)
                self._histograms[key] = self._histograms.get(key, 0) + histogram
                statistics = _picture_statistics(histogram, frames)
            else:
                statistics = _statistics(column)
            for name, values in statistics.items():
                episode[f"stats/{key}/{name}"] = values
        self._episodes.append(episode)
        self._frames += frames

    def close(self) -> Path | None:
        """Write the descriptions, and move the dataset to its place.

        Returns:
            The folder of the dataset, or None if there are no episodes.
        """
        if self._writer is None:
            return None
        self._writer.close()
        self._writer = None
        import pyarrow as pa

        episodes = pa.Table.from_pylist(self._episodes)
        self._write_table(_EPISODES.format(chunk_index=0, file_index=0), episodes)
        tasks = pa.table({"task_index": [0], "task": [self._task]})
        self._write_table("meta/tasks.parquet", tasks.replace_schema_metadata(_index("task")))
        self._write_json("meta/stats.json", self._all_statistics())
        self._write_json("meta/info.json", self._info())
        replace_path(self._aside, self.folder)
        return self.folder

    def _feature(self, key: str, value: np.ndarray) -> Plain:
        shape: list[Plain] = [*value.shape[1:]] or [1]
        if value.ndim == 4 and value.dtype == np.uint8 and shape[2] in (1, 3):
            return {"dtype": "image", "shape": shape, "names": ["height", "width", "channels"]}
        if value.ndim > 2:
            raise ValueError(
                f"Feature '{key}' has frames of shape {shape} and type {value.dtype}: give "
                "vectors, or images as uint8 with 1 or 3 channels last."
            )
        names = self._names.get(key)
        if names is not None and len(names) != shape[0]:
            raise ValueError(f"Feature '{key}' has {shape[0]} elements, but {len(names)} names.")
        return {"dtype": value.dtype.name, "shape": shape, "names": names}

    @staticmethod
    def _place(kind: str, file: int) -> dict[str, int]:
        chunk, file = divmod(file, _FILES_OF_CHUNK)
        return {f"{kind}/chunk_index": chunk, f"{kind}/file_index": file}

    def _write_rows(self, table: pa.Table) -> None:
        import pyarrow.parquet as pq

        if self._writer is not None and self._path().stat().st_size > _DATA_MB * 2**20:
            self._writer.close()
            self._writer = None
            self._file += 1
        if self._writer is None:
            self._path().parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._path(), table.schema)
        self._writer.write_table(table)

    def _path(self) -> Path:
        chunk, file = divmod(self._file, _FILES_OF_CHUNK)
        return self._aside / _DATA.format(chunk_index=chunk, file_index=file)

    def _write_table(self, name: str, table: pa.Table) -> None:
        import pyarrow.parquet as pq

        path = self._aside / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)

    def _write_json(self, name: str, value: Plain) -> None:
        text = json.dumps(value, indent=4, ensure_ascii=False)
        (self._aside / name).write_text(text + "\n", encoding="utf-8")

    def _all_statistics(self) -> Plain:
        import pyarrow.dataset as ds

        rows = ds.dataset(self._aside / "data", format="parquet")
        statistics: dict[str, Plain] = {}
        for key in self._features:
            histogram = self._histograms.get(key)
            if histogram is None:
                column = _array(rows.to_table([key]).column(key))
                statistics[key] = _statistics(column, quantiles=True)
            else:
                statistics[key] = _picture_statistics(histogram, self._frames, quantiles=True)
        return statistics

    def _info(self) -> Plain:
        fps = int(self._fps) if float(self._fps).is_integer() else self._fps
        return {
            "codebase_version": "v3.0",
            "robot_type": self._robot,
            "total_episodes": self.num_episodes,
            "total_frames": self._frames,
            "total_tasks": 1,
            "chunks_size": _FILES_OF_CHUNK,
            "data_files_size_in_mb": _DATA_MB,
            "video_files_size_in_mb": 200,
            "fps": fps,
            "splits": {"train": f"0:{self.num_episodes}"},
            "data_path": _DATA,
            "video_path": None,
            "features": self._features,
        }


def _table(columns: Mapping[str, np.ndarray]) -> pa.Table:
    import pyarrow as pa

    picture = pa.struct([("bytes", pa.binary()), ("path", pa.string())])

    def column(value: np.ndarray) -> pa.Array:
        if value.ndim == 4:
            return pa.array([{"bytes": _png(picture), "path": None} for picture in value], picture)
        flat = pa.array(np.ascontiguousarray(value).reshape(-1))
        if value.ndim == 1:
            return flat
        return pa.FixedSizeListArray.from_arrays(flat, value.shape[1])

    return pa.table({key: column(value) for key, value in columns.items()})


def _array(column: pa.ChunkedArray) -> np.ndarray:
    """Return a column of a table as an array of shape [frames] or [frames, size]."""
    import pyarrow as pa

    whole = column.combine_chunks()
    if not pa.types.is_fixed_size_list(whole.type):
        return whole.to_numpy(zero_copy_only=False)
    return whole.flatten().to_numpy(zero_copy_only=False).reshape(-1, whole.type.list_size)


def _statistics(column: np.ndarray, quantiles: bool = False) -> dict[str, Plain]:
    """Return the statistics of a feature over frames, each a list with a value per element."""
    values = column.reshape(len(column), -1).astype(np.float64)
    result = {
        "min": values.min(0).tolist(),
        "max": values.max(0).tolist(),
        "mean": values.mean(0).tolist(),
        "std": values.std(0).tolist(),
        "count": [len(values)],
    }
    if quantiles:
        found = np.quantile(values, list(_QUANTILES.values()), axis=0)
        result |= {name: found[i].tolist() for i, name in enumerate(_QUANTILES)}
    return result


def _png(picture: np.ndarray) -> bytes:
    """Return an image of shape [height, width, channels] as a PNG file."""
    from PIL import Image

    if picture.shape[2] == 1:
        picture = picture.squeeze(2)
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "PNG")
    return file.getvalue()


def _histogram(pictures: np.ndarray) -> np.ndarray:
    """Return how often each value is in each channel of images, shape [channels, 256]."""
    channels = np.moveaxis(pictures, -1, 0).reshape(pictures.shape[-1], -1)
    return np.stack([np.bincount(channel, minlength=256) for channel in channels])


def _picture_statistics(
    histogram: np.ndarray, frames: int, quantiles: bool = False
) -> dict[str, Plain]:
    """Return the statistics of images by channel, with values in [0, 1], shape [channels, 1, 1]."""
    values = np.arange(256) / 255.0
    share = histogram / histogram.sum(axis=1, keepdims=True)
    mean = share @ values
    found = {
        "min": [values[np.flatnonzero(row)[0]] for row in histogram],
        "max": [values[np.flatnonzero(row)[-1]] for row in histogram],
        "mean": mean,
        "std": np.sqrt(np.maximum(share @ values**2 - mean**2, 0.0)),
    }
    if quantiles:
        reached = share.cumsum(axis=1)
        found |= {
            name: [values[min(255, np.searchsorted(row, q))] for row in reached]
            for name, q in _QUANTILES.items()
        }
    statistics: dict[str, Plain] = {}
    for name, channels in found.items():
        statistics[name] = [[[float(value)]] for value in channels]
    statistics["count"] = [frames]
    return statistics


def _index(column: str) -> dict[str, str]:
    """Return metadata of a table whose `column`, of strings, pandas reads as the index."""
    described = {"name": column, "field_name": column, "pandas_type": "unicode"}
    columns = [{**described, "numpy_type": "object", "metadata": None}]
    return {
        "pandas": json.dumps({"index_columns": [column], "columns": columns, "column_indexes": []})
    }
