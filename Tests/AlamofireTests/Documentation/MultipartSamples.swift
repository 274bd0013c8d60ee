import Alamofire

// The samples of the comments on multipart forms; see `SampleTests`.

func encodingAForm() throws -> Data {
  let form = MultipartFormData()
  form.append(Data("Ada Lovelace".utf8), withName: "author")
  form.append(URL(fileURLWithPath: "/tmp/engine.png"), withName: "picture")
  let body = try form.encode()
  return body
}

func appendingAFileUnderAnotherName(to form: MultipartFormData, temporaryFile: URL) {
  form.append(temporaryFile, withName: "picture", fileName: "engine.png")  // image/png
}
