import Foundation

/// A server of tus 1.0: the package `tuspyserver` of Python in `.build/venv`, by other authors.
final class TusPeer: Sendable {
  private let folder: URL
  private let port: UInt16
  private let process: ServerProcess

  init() async throws {
    folder = try ServerProcess.makeFolder("tus")
    try FileManager.default.createDirectory(
      at: folder.appendingPathComponent("files"), withIntermediateDirectories: true)
    let file = folder.appendingPathComponent("peer.py")
    try Data(Self.script.utf8).write(to: file)
    port = try Loopback.freePorts(1)[0]
    process = try ServerProcess(
      [PythonEnvironment.program, "-I", file.path, folder.path, String(port)], in: folder)
    try await process.untilAnswering([port])
  }

  /// The URL that creates uploads. OPTIONS has no other route.
  var url: String { "http://127.0.0.1:\(port)/files/" }

  /// The contents of the complete uploads, one for each call of the server's completion handler.
  var completed: [Data] {
    get throws {
      let list = folder.appendingPathComponent("completed.txt")
      let paths = (try? String(contentsOf: list, encoding: .utf8)) ?? ""
      return try paths.split(separator: "\n").map { try Data(contentsOf: URL(fileURLWithPath: String($0))) }
    }
  }

  /// Makes the server drop what follows the first bytes of each `PATCH`, and answer none, until `nil` is given.
  func stopReading(after count: Int?) throws {
    try Data((count.map(String.init) ?? "").utf8).write(to: folder.appendingPathComponent("limit.txt"))
  }

  private static let script = """
    import functools, os, sys
    import tuspyserver.request, uvicorn
    from fastapi import FastAPI
    from tuspyserver import create_tus_router

    # The lock of an upload blocks the loop that reads the end of the connection that has it, 30 seconds by default.
    tuspyserver.request.acquire_upload_lock = functools.partial(
        tuspyserver.request.acquire_upload_lock, timeout=0.2)

    folder, port = sys.argv[1], int(sys.argv[2])

    def completed(path, metadata):
        with open(folder + "/completed.txt", "a") as list:
            list.write(path + "\\n")

    app = FastAPI()
    app.include_router(create_tus_router(
        prefix="files", files_dir=folder + "/files", on_upload_complete=completed, strict_offset_validation=True))


    def limit():
        path = folder + "/limit.txt"
        return open(path).read() if os.path.exists(path) else ""

    class Limited:
        def __init__(self, app):
            self.app = app

        async def __call__(self, scope, receive, send):
            text = limit() if scope.get("method") == "PATCH" else ""
            left = int(text) if text else None

            async def limited():
                nonlocal left
                while True:
                    message = await receive()
                    if left is None or message["type"] != "http.request":
                        return message
                    body = message.get("body", b"")[:left]
                    left -= len(body)
                    if body:
                        return {"type": "http.request", "body": body, "more_body": True}

            await self.app(scope, limited, send)

    uvicorn.run(Limited(app), host="127.0.0.1", port=port, log_level="warning")
    """
}
