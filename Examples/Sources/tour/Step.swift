import Alamofire

/// One step of the tour.
struct Step: Sendable {
  let title: String
  /// The name of the file that contains the step.
  let file: String
  let run: @Sendable (Stage) async throws -> Void

  init(_ title: String, file: String = #fileID, run: @escaping @Sendable (Stage) async throws -> Void) {
    self.title = title
    self.file = file.split(separator: "/").last.map(String.init) ?? file
    self.run = run
  }
}

/// A result that differs from the one that the step expects.
struct Surprise: LocalizedError {
  let errorDescription: String?

  init(_ sentence: String) {
    errorDescription = sentence
  }
}
