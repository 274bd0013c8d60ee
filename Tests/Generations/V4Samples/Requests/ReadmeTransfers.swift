import AlamofireV4
import Foundation
import HTTPTestServer
import Testing

// The README of 4.x: downloads, uploads, timeline and metrics, debugging.

private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
  "samples-\(UUID().uuidString)")

// The document takes the folder of documents; the tests do not touch that.
private func documentsURL() -> URL { folder }

private class ImageRequestor {
  var resumeData: Data?
  var image: UIImage?

  func fetchImage(completion: @escaping (UIImage?) -> Void) {
    guard image == nil else {
      completion(image)
      return
    }

    // The document makes a destination here and does not use it.
    let request: DownloadRequest

    if let resumeData = resumeData {
      request = Alamofire.download(resumingWith: resumeData)
    } else {
      request = Alamofire.download("https://httpbin.org/image/png")
    }

    request.responseData { response in
      switch response.result {
      case .success(let data):
        self.image = UIImage(data: data)
      case .failure:
        self.resumeData = response.resumeData
      }
      removeFile(at: response.temporaryURL)  // Not in the document.
      // The document forgets to call it.
      completion(self.image)
    }
  }
}

extension Samples {
  @Suite struct ReadmeTransfers {
    let environment: SampleEnvironment
    init() throws { environment = try SampleEnvironment.set() }

    @Test func download() async throws {
      let request = Alamofire.download("https://httpbin.org/image/png").responseData { response in
        if let data = response.result.value {
          let image = UIImage(data: data)
          print(image != nil)
        }
      }

      #expect(await printed() == ["true"])
      await removeFile(of: request)
    }

    @Test func downloadFileDestination() async throws {
      let urlString = "https://httpbin.org/image/png"
      let destination: DownloadRequest.DownloadFileDestination = { _, _ in
        let documentsURL = documentsURL()
        // The document uses the result of `appendPathComponent`, which has none.
        let fileURL = documentsURL.appendingPathComponent("pig.png")

        return (fileURL, [.removePreviousFile, .createIntermediateDirectories])
      }

      for _ in 0..<2 {
        Alamofire.download(urlString, to: destination).response { response in
          print(response)

          if response.error == nil, let imagePath = response.destinationURL?.path {
            let image = UIImage(contentsOfFile: imagePath)
            print(imagePath, image != nil)
          }
        }
        #expect(await printed(2)[1] == "\(folder.path)/pig.png true")
      }
      try FileManager.default.removeItem(at: folder)
    }

    @Test func suggestedDownloadDestination() async throws {
      // The document labels the folder `directory:`, as 3.x did.
      let destination = DownloadRequest.suggestedDownloadDestination(for: .cachesDirectory)
      Alamofire.download("https://httpbin.org/image/png", to: destination).response { response in
        print(response.destinationURL?.path)
      }

      let path = try #require(await printed().first)
      #expect(UIImage(contentsOfFile: path) != nil)
      try FileManager.default.removeItem(atPath: path)
    }

    @Test func downloadProgress() async throws {
      let request = Alamofire.download("https://httpbin.org/image/png")
        .downloadProgress { progress in
          print("Download Progress: \(progress.fractionCompleted)")
        }
        .responseData { response in
          if let data = response.result.value {
            let image = UIImage(data: data)
            print(image != nil)
          }
        }

      var lines = await printed(2)
      while lines.last != "true" { lines += await printed() }
      #expect(lines.dropLast().last == "Download Progress: 1.0")
      await removeFile(of: request)
    }

    @Test func downloadProgressOnAQueue() async throws {
      let utilityQueue = DispatchQueue(label: "samples.utility", qos: .utility)

      let request = Alamofire.download("https://httpbin.org/image/png")
        .downloadProgress(queue: utilityQueue) { progress in
          print("Download Progress: \(progress.fractionCompleted) \(Thread.isMainThread)")
        }
        .responseData(queue: utilityQueue) { response in
          if let data = response.result.value {
            let image = UIImage(data: data)
            print(image != nil)
          }
        }

      var lines = await printed(2)
      while lines.last != "true" { lines += await printed() }
      #expect(lines.dropLast().last == "Download Progress: 1.0 false")
      await removeFile(of: request)
    }

    @Test func resumingADownload() async throws {
      let requestor = ImageRequestor()
      await withCheckedContinuation { continuation in
        requestor.fetchImage { _ in continuation.resume() }
      }
      #expect(requestor.image != nil)
      #expect(requestor.resumeData == nil)
    }

    @Test func uploadingData() async throws {
      let imageData = UIPNGRepresentation(image)!

      Alamofire.upload(imageData, to: "https://httpbin.org/post").responseJSON { response in
        debugPrint(response)
      }

      #expect(await printed()[0].contains("SUCCESS"))
      #expect(try await environment.request().body == Array(image.data))
    }

    @Test func uploadingAFile() async throws {
      // The document takes an optional URL from the bundle.
      let fileURL = try file("video.mov", bytes: 100_000)
      defer { removeFolder(of: fileURL) }

      Alamofire.upload(fileURL, to: "https://httpbin.org/post").responseJSON { response in
        debugPrint(response)
      }

      #expect(await printed()[0].contains("SUCCESS"))
      #expect(try await environment.request().bodyLength == 100_000)
    }

    @Test func uploadingMultipartFormData() async throws {
      let unicornImageURL = try file("unicorn.png", bytes: 10)
      let rainbowImageURL = try file("rainbow.png", bytes: 20)
      defer { removeFolder(of: unicornImageURL, rainbowImageURL) }

      Alamofire.upload(
        multipartFormData: { multipartFormData in
          multipartFormData.append(unicornImageURL, withName: "unicorn")
          multipartFormData.append(rainbowImageURL, withName: "rainbow")
        },
        to: "https://httpbin.org/post",
        encodingCompletion: { encodingResult in
          switch encodingResult {
          case .success(let upload, _, _):
            upload.responseJSON { response in
              debugPrint(response)
            }
          case .failure(let encodingError):
            print(encodingError)
          }
        }
      )

      let line = await printed()[0]
      #expect(line.contains("unicorn"))
      #expect(line.contains("rainbow"))
      #expect(
        try await environment.request().header("Content-Type")?.hasPrefix("multipart/form-data; boundary=")
          == true)
    }

    @Test func uploadProgress() async throws {
      let fileURL = try file("video.mov", bytes: 200_000)
      defer { removeFolder(of: fileURL) }

      Alamofire.upload(fileURL, to: "https://httpbin.org/post")
        .uploadProgress { progress in  // main queue by default
          print("Upload Progress: \(progress.fractionCompleted)")
        }
        .downloadProgress { progress in  // main queue by default
          print("Download Progress: \(progress.fractionCompleted)")
        }
        .responseJSON { response in
          debugPrint(response)
        }

      var lines: [String] = []
      while lines.last?.contains("SUCCESS") != true { lines += await printed() }
      #expect(lines.contains("Upload Progress: 1.0"))
      #expect(lines.contains { $0.hasPrefix("Download Progress: ") })
    }

    @Test func timeline() async throws {
      Alamofire.request("https://httpbin.org/get").responseJSON { response in
        print(response.timeline)
      }

      let line = await printed()[0]
      #expect(line.hasPrefix("Timeline: { \"Latency\": "))
      #expect(line.hasSuffix(" secs }"))
    }

    @Test func metrics() async throws {
      Alamofire.request("https://httpbin.org/get").responseJSON { response in
        print(response.metrics)
      }

      #expect(await printed()[0] != "nil")
    }

    @Test func metricsWhereTheyAreAvailable() async throws {
      Alamofire.request("https://httpbin.org/get").responseJSON { response in
        // The document writes `iOS 10.0. *`.
        if #available(iOS 10.0, *) {
          print(response.metrics)
        }
      }

      #expect(await printed()[0] != "nil")
    }

    @Test func customStringConvertible() async throws {
      let request = Alamofire.request("https://httpbin.org/ip")
      request.response { _ in print(request) }
      #expect("\(request)".hasPrefix("GET https://httpbin.org/ip"))

      // GET https://httpbin.org/ip (200)
      #expect(await printed() == ["GET https://httpbin.org/ip (200)"])
    }

    @Test func customDebugStringConvertible() async throws {
      let request = Alamofire.request("https://httpbin.org/get", parameters: ["foo": "bar"])
      debugPrint(request)

      let line = await printed()[0]
      // `-i` until 4.4, `-v` since 4.5.
      #expect(line.hasPrefix("$ curl -v"))
      #expect(line.contains(#"-H "Accept-Encoding: gzip;q=1.0, compress;q=0.5""#))
      #expect(line.hasSuffix(#""https://httpbin.org/get?foo=bar""#))
      _ = try await environment.request()
    }
  }
}
