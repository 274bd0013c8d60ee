import Alamofire

let compression = Step("Compressed bodies") { stage in
  let response = await AF.request(stage.server.url("/gzip")).serializingData().response
  let data = try response.result.get()
  guard let transaction = response.metrics?.transactionMetrics.last else {
    throw Surprise("There are no metrics.")
  }
  stage.show("Content-Encoding", response.response?.value(forHTTPHeaderField: "Content-Encoding") ?? "none")
  stage.show("over the wire", "\(transaction.countOfResponseBodyBytesReceived) bytes")
  stage.show("decoded", "\(data.count) bytes")
}
