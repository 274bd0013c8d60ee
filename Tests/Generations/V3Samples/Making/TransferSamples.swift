import AlamofireV3
import HTTPTestServer
import Testing

extension Samples {
  @Suite struct Transfers {
    let site: Site

    init() throws {
      site = try Site()
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      try Data("picture".utf8).write(to: fileURL)
    }

    private let folder = FileManager.default.temporaryDirectory
      .appendingPathComponent("v3-samples-\(UUID().uuidString)")

    /// The file that the document takes from the bundle of the program: `Default.png`.
    private var fileURL: URL { folder.appendingPathComponent("Default.png") }

    private func cleanUp() { try? FileManager.default.removeItem(at: folder) }

    // Uploading a File
    @Test func sample17_uploadingAFile() async throws {
      defer { cleanUp() }
      Alamofire.upload(.POST, "https://httpbin.org/post", file: fileURL)

      let request = try await site.request()
      #expect("\(request.method) \(request.target) \(request.bodyText)" == "POST /post picture")
    }

    // Uploading with Progress
    @Test func sample18_uploadingWithProgress() async {
      defer { cleanUp() }
      let onMain = Totals()
      let (json, totals): (Any?, [Int64]) = await waiting { done in
        Alamofire.upload(.POST, "https://httpbin.org/post", file: fileURL)
          .progress { bytesWritten, totalBytesWritten, totalBytesExpectedToWrite in
            print(totalBytesWritten)

            // This closure is NOT called on the main queue for performance
            // reasons. To update your ui, dispatch to the main queue.
            DispatchQueue.main.async {
              print("Total bytes written on main queue: \(totalBytesWritten)")
              onMain.values.append(totalBytesWritten)
            }
          }
          .responseJSON { response in
            debugPrint(response)
            done((response.result.value, onMain.values))
          }
      }

      #expect(value("data", of: json) == "picture")
      // The closure may be added after the only chunk was sent.
      #expect(totals.isEmpty || totals.last == 7)
    }

    // Uploading MultipartFormData
    @Test func sample19_uploadingMultipartFormData() async {
      defer { cleanUp() }
      let unicornImageURL = fileURL
      let rainbowImageURL = fileURL
      let json: Any? = await waiting { done in
        Alamofire.upload(
          .POST,
          "https://httpbin.org/post",
          multipartFormData: { multipartFormData in
            multipartFormData.appendBodyPart(fileURL: unicornImageURL, name: "unicorn")
            multipartFormData.appendBodyPart(fileURL: rainbowImageURL, name: "rainbow")
          },
          encodingCompletion: { encodingResult in
            switch encodingResult {
            case .Success(let upload, _, _):
              upload.responseJSON { response in
                debugPrint(response)
                done(response.result.value)
              }
            case .Failure(let encodingError):
              print(encodingError)
              done(nil)
            }
          }
        )
      }

      #expect(value("files.unicorn", of: json) == "picture")
      #expect(value("files.rainbow", of: json) == "picture")
    }

    /// Runs `body`, which downloads to the folder of documents under an unused name. Removes the file, and the folder
    /// if it did not exist before. Returns the contents of the file at `name` with the value of `body`.
    private func inDocuments<Value>(
      _ name: String = Site.fileName, _ body: () async throws -> Value
    ) async throws -> (Value, lines: Int) {
      defer { cleanUp() }
      let files = FileManager.default
      let folder = files.urls(for: .documentDirectory, in: .userDomainMask)[0]
      let document = folder.appendingPathComponent(name)
      try #require(!files.fileExists(atPath: document.path), "somebody's own file would be in the way")
      let existed = files.fileExists(atPath: folder.path)
      try files.createDirectory(at: folder, withIntermediateDirectories: true)
      defer {
        try? files.removeItem(at: document)
        if !existed, (try? files.contentsOfDirectory(atPath: folder.path)) == [] {
          try? files.removeItem(at: folder)
        }
      }
      let value = try await body()
      return (value, try String(contentsOf: document, encoding: .utf8).split(separator: "\n").count)
    }

    private let destination = Alamofire.Request.suggestedDownloadDestination(
      directory: .documentDirectory, domain: .userDomainMask)

    private func waitForEnd(of request: Request) async -> NSError? {
      await waiting { done in request.response { _, _, _, error in done(error) } }
    }

    // Downloading a File
    @Test func sample20_downloadingAFile() async throws {
      let (error, lines) = try await inDocuments {
        let download = Alamofire.download(.GET, "https://httpbin.org/stream/100") { temporaryURL, response in
          let fileManager = FileManager.default
          let directoryURL = fileManager.urls(for: .documentDirectory, in: .userDomainMask)[0]
          let pathComponent = response.suggestedFilename

          return directoryURL.appendingPathComponent(pathComponent!)
        }
        return await waitForEnd(of: download)
      }
      #expect(error == nil)
      #expect(lines == 100)
    }

    // Using the Default Download Destination
    @Test func sample21_defaultDownloadDestination() async throws {
      let (error, lines) = try await inDocuments {
        let destination = Alamofire.Request.suggestedDownloadDestination(
          directory: .documentDirectory, domain: .userDomainMask)
        let download = Alamofire.download(
          .GET, "https://httpbin.org/stream/100", destination: destination)
        return await waitForEnd(of: download)
      }
      #expect(error == nil)
      #expect(lines == 100)
    }

    // Downloading a File w/Progress
    @Test func sample22_downloadingWithProgress() async throws {
      let (line, _): (String, Int) = try await inDocuments {
        await waiting { done in
          Alamofire.download(.GET, "https://httpbin.org/stream/100", destination: destination)
            .progress { bytesRead, totalBytesRead, totalBytesExpectedToRead in
              print(totalBytesRead)

              // This closure is NOT called on the main queue for performance
              // reasons. To update your ui, dispatch to the main queue.
              DispatchQueue.main.async {
                print("Total bytes read on main queue: \(totalBytesRead)")
              }
            }
            .response { _, _, _, error in
              if let error = error {
                print("Failed with error: \(error)")
                done("\(error)")
              } else {
                print("Downloaded file successfully")
                done("successfully")
              }
            }
        }
      }
      #expect(line == "successfully")
    }

    // Accessing Resume Data for Failed Downloads
    @Test func sample23_resumeDataOfTheHandler() async throws {
      let (line, _): (String, Int) = try await inDocuments {
        await waiting { done in
          Alamofire.download(.GET, "https://httpbin.org/stream/100", destination: destination)
            .response { _, _, data, _ in
              if let data = data,
                let resumeDataString = NSString(data: data, encoding: String.Encoding.utf8.rawValue)
              {
                print("Resume Data: \(resumeDataString)")
                done("\(resumeDataString)")
              } else {
                print("Resume Data was empty")
                done("empty")
              }
            }
        }
      }
      #expect(line == "empty")
    }

    @Test func sample24_resumeDataOfTheRequest() async throws {
      let (line, _): (String, Int) = try await inDocuments {
        await waiting { done in
          let download = Alamofire.download(
            .GET, "https://httpbin.org/stream/100", destination: destination)
          download.response { _, _, _, _ in
            if let resumeData = download.resumeData,
              let resumeDataString = NSString(data: resumeData, encoding: String.Encoding.utf8.rawValue)
            {
              print("Resume Data: \(resumeDataString)")
              done("\(resumeDataString)")
            } else {
              print("Resume Data was empty")
              done("empty")
            }
          }
        }
      }
      #expect(line == "empty")
    }
  }
}

/// Values that a sample collects on the main queue.
private final class Totals {
  var values: [Int64] = []
}
