# SPDX-License-Identifier: MIT
"""What SummaryWriter writes besides scalars, histograms, single pictures and text: several pictures, moving ones, figures,
sound, points in space, embeddings, curves of precision and recall, and layouts of charts."""

import io
import os
import struct

import tenon
from tenon.utils.tensorboard import record

__all__ = ["MoreSummaries"]


def _tensor(values):
    return values.detach() if isinstance(values, tenon.Tensor) else tenon.as_tensor(values)


def _floats(shape, values):
    """A TensorProto of floats."""
    shape = b"".join(record.chunk(2, record.integer(1, n)) for n in shape)
    return record.integer(1, 1) + record.chunk(2, shape) + record.chunk(5, struct.pack("<%df" % len(values), *values))


def _strings(text):
    """A TensorProto of one string of bytes."""
    return record.integer(1, 7) + record.chunk(2, record.chunk(2, record.integer(1, 1))) + record.chunk(8, text)


def _grid(pictures, columns=8):
    """Pictures (N, C, H, W) beside and below one another, as one."""
    n, c, h, w = pictures.shape
    columns = min(n, columns)
    rows = (n + columns - 1) // columns
    out = tenon.zeros((c, rows * h, columns * w), dtype=pictures.dtype)
    for i in range(n):
        y, x = i // columns * h, i % columns * w
        out[:, y:y + h, x:x + w] = pictures[i]
    return out


class MoreSummaries:
    """A part of SummaryWriter."""

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """Several pictures in a grid."""
        pictures, layout = _tensor(img_tensor), dataformats.upper()
        if sorted(layout) not in (sorted("NCHW"), sorted("NHW")):
            raise ValueError("dataformats must be an order of NCHW, but got %s" % dataformats)
        if "C" not in layout:
            pictures, layout = pictures.unsqueeze(-1), layout + "C"
        self.add_image(tag, _grid(pictures.permute([layout.index(axis) for axis in "NCHW"])), global_step, walltime)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """One figure of matplotlib, or a list of them of one size, as pictures."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        figures = figure if isinstance(figure, (list, tuple)) else [figure]
        made = []
        for one in figures:
            canvas = FigureCanvasAgg(one)
            canvas.draw()
            width, height = canvas.get_width_height()
            pixels = tenon.frombuffer(bytearray(canvas.buffer_rgba()), dtype=tenon.uint8)
            made.append(pixels.reshape(height, width, 4)[:, :, :3].permute(2, 0, 1))
        if close:
            import matplotlib.pyplot
            for one in figures:
                matplotlib.pyplot.close(one)
        if isinstance(figure, (list, tuple)):
            self.add_images(tag, tenon.stack(made), global_step, walltime)
        else:
            self.add_image(tag, made[0], global_step, walltime)

    def add_image_with_boxes(self, tag, img_tensor, box_tensor, global_step=None, walltime=None, rescale=1, dataformats="CHW",
                             labels=None):
        """A picture with boxes around parts of it: (x, y, x, y) of two corners each, with labels."""
        from PIL import Image, ImageDraw
        from tenon.utils.tensorboard.writer import _pixels
        labels = [labels] if isinstance(labels, str) else labels
        boxes = _tensor(box_tensor).tolist()
        if labels is not None and len(labels) != len(boxes):
            labels = None
        height, width, rows = _pixels(img_tensor, dataformats)
        picture = Image.frombytes("RGB", (width, height), b"".join(rows))
        draw = ImageDraw.Draw(picture)
        for i, box in enumerate(boxes):
            left, top, right, bottom = box
            draw.line([(left, top), (left, bottom), (right, bottom), (right, top), (left, top)], width=4, fill="Red")
            if labels:
                draw.text((left, bottom), labels[i], fill="Red")
        picture = picture.resize((int(width * rescale), int(height * rescale)))
        pixels = tenon.frombuffer(bytearray(picture.tobytes()), dtype=tenon.uint8)
        self.add_image(tag, pixels.reshape(picture.size[1], picture.size[0], 3), global_step, walltime, "HWC")

    def add_video(self, tag, vid_tensor, global_step=None, fps=4, walltime=None):
        """Moving pictures (N, T, C, H, W), the N of them side by side, as a GIF."""
        try:
            from PIL import Image
        except ImportError:
            print("add_video needs package Pillow")
            return
        from tenon.utils.tensorboard.writer import _pixels
        video = _tensor(vid_tensor)
        frames = []
        for t in range(video.shape[1]):
            height, width, rows = _pixels(_grid(video[:, t]), "CHW")
            frames.append(Image.frombytes("RGB", (width, height), b"".join(rows)))
        file = io.BytesIO()
        frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=1000 / fps, loop=0)
        self.file_writer.add_summary(record.image(tag, height, width, video.shape[2], file.getvalue()), global_step, walltime)

    def add_mesh(self, tag, vertices, colors=None, faces=None, config_dict=None, global_step=None, walltime=None):
        """Points in space, (B, N, 3), with colors and triangles between them."""
        import json
        parts = [(name, kind, _tensor(data)) for name, kind, data in
                 (("VERTEX", 1, vertices), ("FACE", 2, faces), ("COLOR", 3, colors)) if data is not None]
        components = sum(1 << kind for _, kind, _ in parts)
        message = b""
        for name, kind, data in parts:
            tensor = _floats(data.shape, data.reshape(-1).tolist())
            about = (record.chunk(2, tag) + record.integer(3, kind) + record.chunk(5, json.dumps(config_dict or {}, sort_keys=True))
                     + record.chunk(6, b"".join(record.varint(n) for n in data.shape)) + record.integer(7, components))
            message += record.value("%s_%s" % (tag, name), record.chunk(8, tensor), "mesh", about)
        self.file_writer.add_summary(message, global_step, walltime)

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        """Sound, of numbers between -1 and 1: (1, L)."""
        import wave
        samples = _tensor(snd_tensor).squeeze().clamp(-1, 1)
        if samples.dim() != 1:
            raise ValueError("input tensor should be 1 dimensional.")
        whole = (samples.to(tenon.float64) * 32767).to(tenon.int16).tolist()
        file = io.BytesIO()
        with wave.open(file, "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(sample_rate)
            out.writeframes(struct.pack("<%dh" % len(whole), *whole))
        sound = (record.single(1, sample_rate) + record.integer(2, 1) + record.integer(3, len(whole))
                 + record.chunk(4, file.getvalue()) + record.chunk(5, "audio/wav"))
        self.file_writer.add_summary(record.value(tag, record.chunk(6, sound)), global_step, walltime)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None):
        """A tensor, as it is: (rows, columns)."""
        flat = _tensor(tensor).to(tenon.float32)
        rows, columns = (1, flat.numel()) if flat.dim() < 2 else (flat.shape[0], flat.numel() // max(flat.shape[0], 1))
        content = record.chunk(8, _floats((rows, columns), flat.reshape(-1).tolist()))
        self.file_writer.add_summary(record.value(tag, content, "tensor"), global_step, walltime)

    def add_pr_curve(self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None):
        """Precision and recall of predictions between 0 and 1, for thresholds between 0 and 1."""
        n = min(num_thresholds, 127)
        truth, guess = _tensor(labels).reshape(-1), _tensor(predictions).reshape(-1).to(tenon.float64)
        weight = tenon.ones_like(guess) if weights is None else _tensor(weights).reshape(-1).to(tenon.float64)
        bucket = (guess * (n - 1)).floor().to(tenon.int64).clamp(0, n - 1)
        truth = truth.to(tenon.float64)
        positive = tenon.zeros(n, dtype=tenon.float64).index_add(0, bucket, truth * weight)
        negative = tenon.zeros(n, dtype=tenon.float64).index_add(0, bucket, (1 - truth) * weight)
        tp, fp = positive.flip(0).cumsum(0).flip(0), negative.flip(0).cumsum(0).flip(0)
        tn, fn = fp[0] - fp, tp[0] - tp
        rows = tenon.stack([tp, fp, tn, fn, tp / (tp + fp).clamp(min=1e-7), tp / (tp + fn).clamp(min=1e-7)])
        content = record.chunk(8, _floats((6, n), rows.reshape(-1).tolist()))
        self.file_writer.add_summary(record.value(tag, content, "pr_curves", record.integer(2, n)), global_step, walltime)

    def add_pr_curve_raw(self, tag, true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts,
                         precision, recall, global_step=None, num_thresholds=127, weights=None, walltime=None):
        """Precision and recall that are known, for thresholds between 0 and 1."""
        n = min(num_thresholds, 127)
        rows = tenon.stack([_tensor(row).to(tenon.float64).reshape(-1) for row in (
            true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision, recall)])
        content = record.chunk(8, _floats(rows.shape, rows.reshape(-1).tolist()))
        self.file_writer.add_summary(record.value(tag, content, "pr_curves", record.integer(2, n)), global_step, walltime)

    def add_custom_scalars(self, layout):
        """Which scalars are shown together: {category: {chart: ["Multiline" or "Margin", [tags]]}}."""
        message = b""
        for category, charts in layout.items():
            inside = record.chunk(1, category)
            for title, (kind, tags) in charts.items():
                if kind == "Margin":
                    if len(tags) != 3:
                        raise AssertionError("a margin chart needs three tags")
                    series = b"".join(record.chunk(i + 1, name) for i, name in enumerate(tags))
                    content = record.chunk(3, record.chunk(1, series))
                else:
                    content = record.chunk(2, b"".join(record.chunk(1, name) for name in tags))
                inside += record.chunk(2, record.chunk(1, title) + content)
            message += record.chunk(2, inside)
        self.file_writer.add_summary(record.value("custom_scalars__config__", record.chunk(8, _strings(message)),
                                                  "custom_scalars"))

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled"):
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled"):
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_embedding(self, mat, metadata=None, label_img=None, global_step=None, tag="default", metadata_header=None):
        """Points for the projector: files in a folder of their own, and a line for them in projector_config.pbtxt."""
        points = _tensor(mat)
        if points.dim() != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        clean = "".join(c if c.isalnum() or c in "-_" else "%" + c.encode().hex() for c in tag)
        name = "%05d/%s" % (global_step or 0, clean)
        folder = os.path.join(self.log_dir, *name.split("/"))
        os.makedirs(folder, exist_ok=True)
        lines = ['tensor_name: "%s:%05d"' % (tag, global_step or 0), 'tensor_path: "%s/tensors.tsv"' % name]
        if metadata is not None:
            if len(metadata) != points.shape[0]:
                raise AssertionError("#labels should equal with #data points")
            rows = ["\t".join(map(str, row)) if metadata_header else str(row) for row in metadata]
            head = ["\t".join(metadata_header)] if metadata_header else []
            self._lines(os.path.join(folder, "metadata.tsv"), head + rows)
            lines.append('metadata_path: "%s/metadata.tsv"' % name)
        if label_img is not None:
            pictures = _tensor(label_img)
            if pictures.shape[0] != points.shape[0]:
                raise AssertionError("#images should equal with #data points")
            side = int((points.shape[0] - 1) ** 0.5) + 1
            from tenon.utils.tensorboard.writer import _pixels, _png
            grid = _grid(pictures, side)
            whole = tenon.zeros((grid.shape[0], side * pictures.shape[2], side * pictures.shape[3]), dtype=grid.dtype)
            whole[:, :grid.shape[1], :grid.shape[2]] = grid
            with open(os.path.join(folder, "sprite.png"), "wb") as file:
                file.write(_png(*_pixels(whole, "CHW")))
            lines += ["sprite {", '  image_path: "%s/sprite.png"' % name,
                      "  single_image_dim: %d" % pictures.shape[3], "  single_image_dim: %d" % pictures.shape[2], "}"]
        self._lines(os.path.join(folder, "tensors.tsv"), ["\t".join(repr(x) for x in row) for row in points.tolist()])
        with open(os.path.join(self.log_dir, "projector_config.pbtxt"), "a", encoding="utf-8") as file:
            file.write("embeddings {\n%s\n}\n" % "\n".join("  " + line for line in lines))

    @staticmethod
    def _lines(path, lines):
        with open(path, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in lines))
