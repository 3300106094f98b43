"""Section of `docs/lab_protocol.md` about the WebSocket."""

WEB_SECTION = """
## WebSocket

Port {web} (`LabServerCfg.web_port`) offers the same requests to browsers and programs. Text
frames are JSON, binary frames msgpack; a reply has the format of its request, and replies come
in the order of the requests. Fields, errors, sessions and limits are those of requests over
ZeroMQ; a connection that ends is a client that left. `hello` with `"include_model": false`
leaves out the model.

`subscribe` with `topics` makes the server send, in the format of the newest request:

- `state/full`: `{{"op": "state_full", ...}}`, the content of that topic of port {state}, first
  the present state, then each newer one, at most `rate` times per second. A peer that does not
  read gets the newest state when it reads again; those in between are dropped and counted.
- `events`: `{{"op": "event", "texts": [...], "driver": ..., "clients": [...],
  "manager_present": ..., "mode": ..., "paused": ..., "fault": ..., "port_errors": [...]}}`,
  first the present, then whenever something of it changes; `texts` are sentences about what
  happened: who took over, faults, ports.

`hold_twist` sets a velocity that ends {hold:g} s later, when another client takes over, and
when the connection ends: send it again while a key is held, and with zeros when it is released.

```python
import json
import time

from websockets.sync.client import connect

from manyworlds.lab.server import LabHub

rod = world_from_spec(mujoco.MjSpec.from_string(ROD))
with LiveLab(rod) as lab, LabHub(cfg) as hub:
    hub.attach(lab)                            # all of this is `manyworlds lab rod.xml --serve`
    while not hub.is_open():
        time.sleep(0.01)
    with connect(f"ws://127.0.0.1:{{hub.ports['web']}}") as socket:  # {web}

        def ask(op, **fields):
            socket.send(json.dumps({{"op": op, **fields}}))
            return json.loads(socket.recv())

        key = ask("hello", client="my script", include_model=False)["session_id"]
        ask("subscribe", session_id=key, topics=["state/full"], rate=10.0)
        state = json.loads(socket.recv())
        print(state["time"], state["per_articulation"]["rod"]["qpos"])
```

In a browser, from a page whose origin is in `LabServerCfg.web_origins`:

```js
const socket = new WebSocket("ws://127.0.0.1:{web}");
const ask = (op, fields) => socket.send(JSON.stringify({{op, ...fields}}));
socket.onopen = () => ask("hello", {{client: "my page", include_model: false}});
socket.onmessage = event => {{
  const message = JSON.parse(event.data);
  if (message.op == "hello_ok")
    ask("subscribe", {{session_id: message.session_id, topics: ["state/full"], rate: 30}});
  if (message.op == "state_full") console.log(message.time);
}};
```

**Host and Origin.** A browser says under which name it reached the server, and which page a script
belongs to. Without a token the name must be `localhost`, 127.0.0.1, ::1, or the host of one of
`web_origins`; scripts of the lab's own page (`LabHub.allow_page`) and of `web_origins` are
admitted; others get status 403 and one sentence, and are counted. Programs send no Origin. The
other ports refuse versions 1 and 2 of ZeroMQ's protocol, which web pages could send: clients have
ZeroMQ 4.0 or later.

**Other machines.** With `listen` (`--listen 0.0.0.0`), the page and the WebSocket are open to
other machines, and need a token: in the address (`?token=...`), in the cookie that the page
sets, or as `Authorization: Bearer ...`. Without it the answer is 403 and one sentence. The
token is in a file that only its owner can read, `~/.config/manyworlds/token`, and in the
address that `manyworlds lab` prints; delete the file for a new one. There is no encryption:
whoever can read the network's traffic reads the token, so use it in a network that you trust,
through an SSH tunnel, or behind a proxy with TLS, whose origin belongs in `web_origins`.
"""
