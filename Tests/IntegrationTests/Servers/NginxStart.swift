import Foundation

/// One attempt to start nginx, which ends when this value is released.
struct NginxStart {
  let certificates: Certificates
  let ports: [UInt16]
  let process: ServerProcess
  let pid: pid_t

  /// Starts nginx, and waits until it listens on a port for each ``NginxServer/Entrance``.
  ///
  /// - Throws: ``ServerFailure``, also if another process uses one of the ports.
  init(_ configuration: NginxConfiguration) async throws {
    let folder = try ServerProcess.makeFolder("nginx")
    certificates = try await Certificates(in: folder)
    ports = try Loopback.freePorts(NginxServer.Entrance.portCount)
    let configurationFile = folder.appendingPathComponent("nginx.conf")
    try configuration.write(to: configurationFile, ports: ports, certificates: certificates)
    process = try ServerProcess(
      [
        NginxServer.program, "-p", folder.path, "-e", folder.appendingPathComponent("error.log").path,
        "-c", configurationFile.path,
      ], in: folder)
    try await process.untilAnswering(ports)
    pid = try await Self.pid(of: process)
  }

  /// Returns the process id, which nginx writes some time after it listens, and never if it fails.
  private static func pid(of process: ServerProcess) async throws -> pid_t {
    let file = process.folder.appendingPathComponent("nginx.pid").path
    var pid: pid_t?
    _ = await eventually {
      let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
      pid = pid_t(text.trimmingCharacters(in: .whitespacesAndNewlines))
      return pid != nil || process.hasEnded
    }
    guard let pid, pid > 1 else { throw ServerFailure(description: "nginx has no process id") }
    return pid
  }
}
