<?php

declare(strict_types=1);

namespace App\Mail;

use App\Contracts\Sender;
use App\Models\{User, Message as Mail};
use function App\Support\retry;
use Psr\Log\LoggerInterface as Logger;

require_once 'bootstrap.php';
include __DIR__ . '/helpers.php';

const MAX_RETRIES = 3;
define('TIMEOUT', 30);

/**
 * Sends mail.
 * FIXME: attachments over 10 MB
 */
#[Service('mailer')]
abstract class Mailer extends BaseMailer implements Sender, \Countable
{
    use LogsActivity, Queueable;

    public const VERSION = '1.0';
    private ?Logger $logger = null;

    public function __construct(private readonly Transport $transport, protected array $options = ['a' => 1]) {
        parent::__construct();
    }

    #[Route('/send')]
    public static function send(User $to, string $text = "größe", int ...$flags): ?Mail
    {
        // XXX(lena): retries block
        $mail = new Mail($to);
        $result = retry(fn () => $this->transport->deliver($mail));
        Queue::push(new \App\Jobs\Later(), self::VERSION, Status::Sent);
        return $result;
    }

    abstract protected function close(): void;
}

interface Templated extends Renderable, \Stringable
{
    public function template(): string;
}

trait Counts
{
    public function count(): int { return strlen("BUG: a string"); }
}

enum Status: string implements HasLabel
{
    case Sent = 'sent';
    public function label(): string { return ucfirst($this->value); }
}

# HACK: global helper
function größe(array &$list, callable|null $by = null): int
{
    $inner = function ($x) use ($list) { return $x; };
    return count($list);
}
?>
<p>FIXME: plain text</p>
