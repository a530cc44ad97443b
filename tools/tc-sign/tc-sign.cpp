//===- tc-sign.cpp - signatures of artifacts ----------------------------------------------------------------------===//
//
// Reads the command line, and signs and verifies through libtcrt: what is signed is what a model would be opened from.
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------------------------------===//

#include "tc/Format/Error.h"
#include "tc/Format/File.h"
#include "tc/Signing/Sign.h"
#include "tc/Support/CommandLine.h"
#include "tc/Support/ToolFiles.h"
#include "tcrt/verify.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <unistd.h>

namespace {

enum ExitCode { kDone = 0, kWrongUse = 1 };

const char *const examplesAndCodes =
    R"(A signature stands beside its artifact, as ARTIFACT.sig, and is of all of its bytes; those hold the hash of a weights file, which
is checked, too. A private key that was encrypted is opened by TC_SIGN_PASSWORD in the environment, with which keygen encrypts it.

Examples:
  tc-sign keygen release                                   makes release.key, which is secret, and release.pub
  tc-sign sign model.bin --key release.key                 writes model.bin.sig
  tc-sign verify model.bin --key release.pub               says whether it is the file that was signed
  tc-sign statement model.bin                              the bytes that are signed, for keys that others keep
  tc-run model.bin --verify-key release.pub                runs it if so

Exit codes: 0 done; 1 wrong use, unreadable input, no artifact, or not what was signed; 5 no memory is left)";

/// A sentence and the exit code.
struct Failure {
  int code;
  std::string message;
};

struct Request {
  std::string command, key, signature;
  std::vector<std::string> files;
};

const char *getPassword() {
  const char *text = std::getenv("TC_SIGN_PASSWORD");
  return text && *text ? text : nullptr;
}

/// Writes a file that was not there. Keys replace none: what one of them signed could not be verified any more.
void writeNew(const std::string &path, const char *text, mode_t mode) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  const size_t bytes = std::strlen(text);
  const bool written = file >= 0 && ::write(file, text, bytes) == ssize_t(bytes);
  const int error = errno;
  if (file >= 0)
    ::close(file);
  if (file >= 0 && !written)
    ::unlink(path.c_str());
  if (!written)
    throw Failure{kWrongUse, path + ": error: the key cannot be written: " + std::strerror(error) +
                                 (error == EEXIST ? "; give another name, or remove it" : "")};
}

void makeKeys(const std::string &name) {
  char *secret, *open, id[TC_KEY_ID_BYTES], why[512] = "";
  if (!tc_make_keys(getPassword(), &secret, &open, id, why, sizeof why))
    throw Failure{kWrongUse, "tc-sign: error: " + std::string(why)};
  auto wipe = [&] {
    ::explicit_bzero(secret, std::strlen(secret));
    std::free(secret);
    std::free(open);
  };
  try {
    writeNew(name + ".key", secret, 0600);
    try {
      writeNew(name + ".pub", open, 0666);
    } catch (const Failure &) {
      ::unlink((name + ".key").c_str());
      throw;
    }
  } catch (const Failure &) {
    wipe();
    throw;
  }
  wipe();
  std::cout << name << ".key: keep it secret" << (getPassword() ? "; it is encrypted" : "") << "\n"
            << name << ".pub: key " << id << ", which verifies\n";
}

class PrivateKey {
public:
  explicit PrivateKey(const std::string &path) {
    constexpr uint64_t kMostBytes = 1 << 16;
    int file;
    uint64_t bytes;
    if (tcrt_file_open(path.c_str(), kMostBytes, nullptr, &file, &bytes) != TCRT_OK)
      throw Failure{kWrongUse, tcrt_last_error()};
    std::string pem(bytes, '\0');
    const bool isRead = tcrt_file_read(file, path.c_str(), 0, pem.data(), bytes) == TCRT_OK;
    ::close(file);
    char why[512] = "";
    const bool isKey = isRead && tc_read_private_key(pem.data(), pem.size(), getPassword(), &key, why, sizeof why);
    ::explicit_bzero(pem.data(), pem.size());
    if (!isRead)
      throw Failure{kWrongUse, tcrt_last_error()};
    if (!isKey)
      throw Failure{kWrongUse, path + ": error: the private key cannot be used: " + why +
                                   "; give the .key file that tc-sign keygen wrote, and its TC_SIGN_PASSWORD if it has "
                                   "one"};
  }
  PrivateKey(const PrivateKey &) = delete;
  PrivateKey &operator=(const PrivateKey &) = delete;
  ~PrivateKey() { tc_free_key(key); }
  const tc_signing_key_t *get() const { return key; }

private:
  tc_signing_key_t *key = nullptr;
};

/// Opens an artifact with all of its hashes, as who runs it will, and lets `verify` see its bytes.
template <typename Verify> void open(const std::string &path, Verify verify, void *user) {
  tcrt_model_options_t options = {};
  options.size = sizeof options;
  options.verify_weights = 1;
  options.verify = verify;
  options.verify_user = user;
  tcrt_model_t *model;
  if (tcrt_status_t status = tcrt_model_open_file(path.c_str(), &options, &model))
    throw Failure{status, tcrt_last_error()};
  tcrt_model_close(model);
}

/// What is signed of an artifact that is sound.
std::string getStatement(const std::string &path) {
  std::string statement(TC_STATEMENT_BYTES, '\0');
  auto take = [](void *user, const char *, const void *data, uint64_t bytes, char *why, uint64_t whyBytes) {
    return tc_make_statement(data, bytes, static_cast<std::string *>(user)->data(), why, whyBytes) ? TCRT_OK
                                                                                                   : TCRT_ERROR_MACHINE;
  };
  open(path, static_cast<tcrt_status_t (*)(void *, const char *, const void *, uint64_t, char *, uint64_t)>(take),
       &statement);
  statement.resize(std::strlen(statement.c_str()));
  return statement;
}

std::string getSignature(const Request &request, const std::string &path) {
  return request.signature.empty() ? path + ".sig" : request.signature;
}

/// A signature may replace an earlier one, and nothing else that is read.
void checkSignatures(const Request &request) {
  std::vector<tc::ToolFile> inputs = {{"the key", request.key}}, outputs;
  for (const std::string &path : request.files) {
    const std::string earlier = "the signature of " + path;
    tc::addArtifactFiles(inputs, "the artifact", path);
    outputs.push_back({request.signature.empty() ? earlier : "--signature", getSignature(request, path), earlier});
  }
  if (const std::string sentence = tc::findReplacedFile(inputs, outputs); !sentence.empty())
    throw Failure{kWrongUse, "tc-sign: error: " + sentence};
}

void sign(const Request &request, const PrivateKey &key, const std::string &path) {
  const std::string statement = getStatement(path);
  char signature[TC_SIGNATURE_BYTES], why[512] = "";
  if (!tc_sign_statement(key.get(), statement.c_str(), signature, why, sizeof why))
    throw Failure{kWrongUse, path + ": error: " + why};
  const std::string target = getSignature(request, path);
  tcrt_output_t output;
  tcrt_status_t status = tcrt_output_open(target.c_str(), &output);
  if (status == TCRT_OK) {
    status = tcrt_output_write(&output, signature, sizeof signature);
    if (status == TCRT_OK)
      status = tcrt_output_keep(&output);
    else
      tcrt_output_drop(&output);
  }
  if (status != TCRT_OK)
    throw Failure{kWrongUse, tcrt_last_error()};
  std::cout << target << ": signed with key " << tc_key_id(key.get()) << "\n";
}

void verify(const Request &request) {
  char why[1024] = "";
  tcrt_verifier_t *verifier;
  const char *signature = request.signature.empty() ? nullptr : request.signature.c_str();
  if (tcrt_status_t status = tcrt_verifier_create(request.key.c_str(), signature, &verifier, why, sizeof why))
    throw Failure{status, why};
  const std::unique_ptr<tcrt_verifier_t, decltype(&tcrt_verifier_destroy)> owner(verifier, tcrt_verifier_destroy);
  // Each is named: what follows the first one that is wrong counts, too.
  int code = kDone;
  for (const std::string &path : request.files) {
    try {
      open(path, tcrt_verifier_check, verifier);
      std::cout << path << ": it is what was signed\n";
    } catch (const Failure &failure) {
      std::cout.flush();
      std::cerr << failure.message << "\n";
      code = code ? code : failure.code;
    }
  }
  if (code)
    throw Failure{code, ""};
}

void run(const Request &request) {
  auto wrong = [](const std::string &what) { throw Failure{kWrongUse, "tc-sign: error: " + what}; };
  const std::string &command = request.command;
  const bool needsKey = command == "sign" || command == "verify";
  if (request.files.empty())
    wrong(command == "keygen" ? "no name is given for the keys; give one behind keygen, such as release"
                              : "no artifact is given; give its file behind " + command);
  if (request.files.size() > 1 && (!needsKey || !request.signature.empty()))
    wrong(needsKey ? "--signature is of one artifact; give the artifacts one by one"
                   : command + " takes one name, and \"" + request.files[1] + "\" is another");
  if (needsKey && request.key.empty())
    wrong(command + (command == "sign" ? " needs the private key; add --key NAME.key"
                                       : " needs the public key; add --key NAME.pub"));
  if (!needsKey && !(request.key.empty() && request.signature.empty()))
    wrong("--key and --signature belong to sign and verify");
  if (command == "keygen") {
    makeKeys(request.files.front());
  } else if (command == "statement") {
    std::cout << getStatement(request.files.front());
  } else if (command == "sign") {
    checkSignatures(request);
    const PrivateKey key(request.key);
    for (const std::string &path : request.files)
      sign(request, key, path);
  } else {
    verify(request);
  }
}

int fail(const std::string &sentence) {
  std::cout.flush();
  if (!sentence.empty())
    std::cerr << sentence << "\n";
  return kWrongUse;
}

} // namespace

int main(int argc, char **argv) {
  Request request;
  tc::CommandLine app("Signs artifacts with Ed25519, and says whether one is what was signed.", "tc-sign");
  app.get_formatter()->column_width(30);
  CLI::Option *option = app.add_option("COMMAND", request.command);
  option->required()->type_name("");
  const std::vector<std::string> commands = {"keygen", "sign", "verify", "statement"};
  app.setChoices(option, "", commands);
  app.add_option("FILE", request.files, "artifacts; for keygen the keys' name, without an extension")->type_name("");
  app.add_option("--key", request.key,
                 "sign: the private key; verify: the public one, or a file with several, one of which must have signed")
      ->type_name("FILE")
      ->group("Keys");
  app.add_option("--signature", request.signature, "the signature's file (default: ARTIFACT.sig)")
      ->type_name("FILE")
      ->group("Keys");
  app.addCommonOptions();
  app.footer(examplesAndCodes);
  try {
    app.parse(argc, argv);
    if (std::find(commands.begin(), commands.end(), request.command) == commands.end())
      return fail("tc-sign: error: there is no command " + request.command + tc::didYouMean(request.command, commands) +
                  "; see tc-sign --help");
    run(request);
  } catch (const CLI::Success &e) {
    std::cout << app.describeSuccess(e);
  } catch (const CLI::ParseError &e) {
    return fail("tc-sign: error: " + tc::describeParseError(app, e, "command") + "; see tc-sign --help");
  } catch (const Failure &failure) {
    fail(failure.message);
    return failure.code;
  }
  std::cout.flush();
  return std::cout ? kDone : fail("tc-sign: error: standard output cannot be written: it is full or closed");
}
